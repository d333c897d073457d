"""Images as documents: judged by their header, a page each, decoded only as far as needed."""

from __future__ import annotations

import io
import time
import tracemalloc

import pytest
from PIL import Image

from pipeline.engines.documents.images import Frame, decoded, profile_image, read_image
from pipeline.errors import Failure, FailureCode
from pipeline.types import DocumentProfile, Page, PageMethod, WindowText
from tests.inputs.pictures import huge_png, saved
from tests.unit.documents import LIMITS, limits

FORMS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF", "image/bmp": "BMP"}


def picture(width: int = 200, height: int = 100) -> Image.Image:
    """A new one each time: saving leaves traces in a picture."""
    return Image.linear_gradient("L").resize((width, height))


def profile(data: bytes, media_type: str = "image/png", **changes: int) -> DocumentProfile | Failure:
    return profile_image(io.BytesIO(data), media_type, limits(**changes))


def pages(data: bytes, media_type: str = "image/png", count: int = 1) -> tuple[Page, ...]:
    window = read_image(io.BytesIO(data), media_type, 1, count, LIMITS)
    assert isinstance(window, WindowText), window
    assert window.blocks == ()
    return window.pages


def grey(data: bytes, media_type: str = "image/png", page: int = 1) -> Image.Image:
    frame = decoded(io.BytesIO(data), media_type, page, LIMITS)
    assert isinstance(frame, Frame), frame
    return frame.picture


@pytest.mark.parametrize(("media_type", "form"), FORMS.items())
def test_every_format_is_one_page_still_to_be_recognised(media_type: str, form: str) -> None:
    data = saved(picture(), form)
    assert profile(data, media_type) == DocumentProfile(1)
    assert pages(data, media_type) == (Page(1, 150, 75, method=PageMethod.SKIPPED),)


def test_a_tiff_has_as_many_pages_as_frames_and_an_animation_one() -> None:
    others = [picture(100, 50), picture(50, 100)]
    tiff = saved(picture(), "TIFF", save_all=True, append_images=others)
    assert profile(tiff, "image/tiff") == DocumentProfile(3)
    assert [(page.page, page.width, page.height) for page in pages(tiff, "image/tiff", 3)] == [
        (1, 150, 75),
        (2, 75, 37.5),
        (3, 37.5, 75),
    ]
    gif = saved(picture(), "GIF", save_all=True, append_images=others)
    assert profile(gif, "image/gif") == DocumentProfile(1)


def test_a_stated_resolution_gives_the_size_on_paper() -> None:
    assert pages(saved(picture(), "PNG", dpi=(200, 200)))[0].width == pytest.approx(72, abs=0.1)
    assert pages(saved(picture(), "PNG", dpi=(72, 72)))[0].width == 150


def test_a_picture_taken_sideways_is_displayed_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    half = Image.new("L", (200, 100), 255)
    half.paste(0, (0, 0, 100, 100))
    data = saved(half, "JPEG", exif=exif)
    assert (pages(data, "image/jpeg")[0].width, pages(data, "image/jpeg")[0].height) == (75, 150)
    upright = grey(data, "image/jpeg")
    assert upright.size == (100, 200)
    # The stored left half, black, is the displayed top.
    assert upright.getpixel((50, 20)) == 0
    assert upright.getpixel((50, 180)) == 255


def test_too_many_pixels_are_refused_before_decoding_with_count_and_limit() -> None:
    tracemalloc.start()
    began = time.process_time()
    refused = profile(huge_png(30_000, 30_000))
    took = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.TOO_LARGE
    assert "900,000,000" in refused.detail
    assert "40,000,000" in refused.detail
    assert took < 0.5
    assert peak < 5_000_000


def test_the_limit_is_the_deployments_own_and_holds_for_every_page() -> None:
    assert isinstance(profile(saved(picture()), max_image_pixels=19_999), Failure)
    assert profile(saved(picture()), max_image_pixels=20_000) == DocumentProfile(1)
    tiff = saved(picture(10, 10), "TIFF", save_all=True, append_images=[picture()])
    refused = profile(tiff, "image/tiff", max_image_pixels=19_999)
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.TOO_LARGE


def test_too_many_pages() -> None:
    tiff = saved(picture(), "TIFF", save_all=True, append_images=[picture() for _ in range(5)])
    refused = profile(tiff, "image/tiff", max_pages=5)
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.TOO_MANY_PAGES
    assert "5" in refused.detail


@pytest.mark.parametrize(("media_type", "form"), [*FORMS.items(), ("image/tiff", "TIFF")])
def test_a_truncated_picture_is_malformed(media_type: str, form: str) -> None:
    noise = Image.effect_noise((300, 300), 80)
    data = saved(noise, form)
    for part in (data[: len(data) // 2], data[:20]):
        refused = profile(part, media_type)
        assert isinstance(refused, Failure)
        assert refused.code is FailureCode.MALFORMED


def test_only_the_decoder_of_the_type_is_tried() -> None:
    refused = profile(saved(picture(), "PNG"), "image/jpeg")
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.MALFORMED


def test_transparency_is_white_and_sixteen_bits_are_scaled() -> None:
    clear = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    assert grey(saved(clear)).getpixel((5, 5)) == 255
    palette = Image.new("P", (10, 10), 0)
    palette.putpalette([0, 0, 0, 255, 255, 255])
    assert grey(saved(palette, "PNG", transparency=0)).getpixel((5, 5)) == 255
    deep = Image.new("I;16", (10, 10), 1_000)
    deep.putpixel((5, 5), 4_000)
    shades = grey(saved(deep))
    assert (shades.getpixel((0, 0)), shades.getpixel((5, 5))) == (0, 255)
    assert shades.mode == "L"
