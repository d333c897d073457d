"""What the sample documents say: the papers of a pump workshop that exists nowhere else."""

from __future__ import annotations

PRICE_LIST_TITLE = "Kestrelford Pumps: price list 2026"

# A page each: its heading, an introduction, and parts of (heading, lines of article, description and price).
PRICE_PAGES: tuple[tuple[str, str, tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]], ...] = (
    (
        "How to read this list",
        (
            "All prices are in euros, include value added tax and hold until 31 December 2026. Articles are ordered by"
            " their number; a number never changes its meaning. Discounts for resellers are agreed in writing and are"
            " not part of this list. Goods marked as ordered on demand leave the store within ten working days."
        ),
        (),
    ),
    (
        "Pumps",
        "Every pump is delivered with a mains cable of ten metres and a printed manual.",
        (
            (
                "Garden pumps",
                (
                    ("KF-110", "Garden pump, 600 W, 3,100 litres an hour", "129.00"),
                    ("KF-120", "Garden pump, 800 W, 3,600 litres an hour", "164.00"),
                    ("KF-150", "Garden pump, 1,100 W, cast iron housing", "248.00"),
                ),
            ),
            (
                "Submersible pumps",
                (
                    ("KF-310", "Submersible pump, 300 W, clean water", "219.00"),
                    ("KF-340", "Submersible pump, 550 W, clean water", "389.00"),
                    ("KF-380", "Submersible pump, 900 W, dirty water", "512.00"),
                ),
            ),
        ),
    ),
    (
        "Controllers, sensors and fittings",
        "Controllers of the C series switch any pump of this list with up to 1,500 W.",
        (
            (
                "Controllers",
                (
                    ("C-20", "Pressure controller with display", "98.00"),
                    ("C-40", "Irrigation controller, four zones", "176.00"),
                    ("C-80", "Irrigation controller, eight zones, radio", "264.00"),
                ),
            ),
            (
                "Sensors and fittings",
                (
                    ("S-05", "Float switch with five metres of cable", "24.50"),
                    ("S-11", "Soil moisture sensor, wired", "39.00"),
                    ("F-25", "Suction hose, 25 millimetres, seven metres", "46.00"),
                ),
            ),
        ),
    ),
    (
        "Workshop services",
        "Work is charged by the quarter of an hour. Travel within twenty kilometres is part of the call-out.",
        (
            (
                "Work and travel",
                (
                    ("W-01", "Bench inspection with written estimate", "45.00"),
                    ("W-02", "Work in the workshop, one hour", "72.00"),
                    ("W-03", "Call-out with a service van, one hour", "118.00"),
                    ("W-07", "Winter storage of one pump, drained and sealed", "35.00"),
                ),
            ),
        ),
    ),
)

SCAN_TITLE = "Commissioning report 7731"
SCAN_LINES: tuple[str, ...] = (
    "Installation: irrigation of the nursery garden, Millbrook Lane",
    "Pump: KF-150, serial number 20418-B",
    "Suction height: 3.5 metres",
    "Standing pressure measured at start-up: 4.2 bar",
    "Flow measured at the farthest sprinkler: 38 litres a minute",
    "Leak test: passed after thirty minutes, no drop observed",
    "Remarks: the non-return valve was replaced on site. The customer was",
    "shown how to drain the line before the first frost.",
)

ERROR_CODES_TITLE = "Error codes of the C series controllers"
# Code, name, what it means, what to do.
ERROR_CODES: tuple[tuple[str, str, str, str], ...] = (
    (
        "ERR-4010",
        "Sensor lost",
        (
            "ERR-4010 means that the wired soil sensor has not answered for ten minutes. The controller goes on with"
            " the timetable of the last day and shows a yellow lamp."
        ),
        (
            "Check the plug of the sensor, then the cable for bites and breaks. A sensor that stays silent at another"
            " socket is defective."
        ),
    ),
    (
        "ERR-4021",
        "Dry running",
        (
            "ERR-4021 means that the pump runs while no water reaches the inlet. The controller has switched the motor"
            " off after forty seconds to save the shaft seal, and it will not start again by itself."
        ),
        (
            "Fill the suction line, look for a closed valve or a blocked strainer, and hold the reset key for three"
            " seconds. If the code returns at once, the well is empty."
        ),
    ),
    (
        "ERR-4022",
        "Motor too hot",
        (
            "ERR-4022 means that the winding of the motor has passed 120 degrees. The controller waits until it has"
            " cooled below 70 degrees and then starts it again without help."
        ),
        (
            "Clean the fan grille, give the housing shade and see that the shaft turns freely by hand. Three times"
            " within one day means a worn bearing."
        ),
    ),
    (
        "ERR-4035",
        "Radio link weak",
        (
            "ERR-4035 means that the radio module of the C-80 receives less than a tenth of the packets of a zone"
            " valve. The valve keeps its last position until it hears the controller again."
        ),
        "Raise the aerial above the ground, or set a repeater halfway between controller and valve.",
    ),
)

HANDBOOK = """\
# Kestrelford handbook

Rules of the house for everybody who works in the workshop, in the store or on the road.

## Opening hours

The workshop is open from Monday to Friday, 7:30 to 16:30. The counter of the store closes half an hour earlier, so
that the till can be counted in daylight. On Saturdays only the emergency line is answered.

## Paid leave

Staff receive twenty-eight days of paid leave in each calendar year. Whoever joins in the middle of it receives a
twelfth for each full month. Up to five days that were left over may be moved into the next spring; they lapse at the
end of March. Leave is entered on the board in the office and confirmed there within a week.

## Illness

Call the office before the shift begins. From the third day on a doctor's note is needed. Days of illness that fall
into leave are given back.

## Tools and vans

Borrowed tools are signed out in the red book and returned clean on the same evening. A van is left with at least half
a tank, the log filled in and nothing of value in sight.

1. Check tyres, lamps and the first-aid kit before leaving.
2. Fasten ladders and pumps; nothing may slide.
3. Report every scratch, also the small ones.

## Safety at the test bench

Ear protection is worn whenever a motor runs. The bench is earthed, its emergency stop is tried every Monday, and no
housing is opened while the pressure gauge shows more than zero.
"""

MAINTENANCE_TITLE = "Maintenance of KF pumps"
MAINTENANCE_INTRO = (
    "A pump that is looked after lasts about twelve years. These instructions are for owners; work marked with W"
    " belongs into the workshop."
)
MAINTENANCE_STEPS: tuple[str, ...] = (
    "Pull the mains plug and let the motor cool down.",
    "Open the drain screw at the foot of the housing and let the water out.",
    "Unscrew the lid, lift out the strainer and rinse it under running water.",
    "Grease the lid's gasket thinly with silicone, never with mineral oil.",
    "Close everything, fill the housing to the brim and start the pump with an open tap.",
)
MAINTENANCE_WINTER: tuple[str, ...] = (
    "Drain pump and pipes before the first night of frost.",
    "Store the pump upright, dry and above freezing point.",
    "Turn the shaft by hand once a month so that the seal does not stick.",
)
MAINTENANCE_TABLE: tuple[tuple[str, str, str], ...] = (
    ("Part", "Interval", "Work"),
    ("Strainer", "every 3 months", "rinse"),
    ("Lid gasket", "every 12 months", "grease, replace when flat"),
    ("Shaft seal", "every 3,000 hours", "replace (W)"),
    ("Bearings", "every 6,000 hours", "replace (W)"),
    ("Non-return valve", "every 24 months", "open and clean"),
)

SPARE_PARTS: tuple[tuple[str, str, str, str, str], ...] = (
    ("part", "description", "fits", "price_eur", "shelf"),
    ("P-1001", "Shaft seal, ceramic", "KF-110, KF-120", "14.80", "A3"),
    ("P-1002", "Shaft seal, silicon carbide", "KF-150", "27.40", "A3"),
    ("P-1010", "Lid gasket", "KF-110, KF-120, KF-150", "4.20", "A4"),
    ("P-1023", "Strainer basket", "KF-110, KF-120", "9.90", "B1"),
    ("P-1031", "Impeller, brass", "KF-150", "58.00", "B2"),
    ("P-1044", "Float arm", "S-05", "7.60", "C1"),
    ("P-1052", "Display glass", "C-20", "12.30", "C4"),
    ("P-1060", "Aerial, folding", "C-80", "18.90", "C5"),
    ("P-1071", "Non-return valve, one inch", "all garden pumps", "21.50", "D2"),
)

SCREENSHOT_TITLE = "C-80 controller - zone settings"
SCREENSHOT_LINES: tuple[tuple[str, str], ...] = (
    ("Firmware", "2.14.3"),
    ("Zone 1 - Roses", "06:10 for 12 minutes"),
    ("Zone 2 - Lawn", "05:30 for 25 minutes"),
    ("Zone 3 - Greenhouse", "every 4 hours for 3 minutes"),
    ("Rain delay", "24 hours"),
    ("Pump restart after power failure", "automatic"),
)
