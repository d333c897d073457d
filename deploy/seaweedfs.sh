#!/bin/sh
# Starts SeaweedFS as one S3 server with the one identity that the environment names.
set -eu
umask 077
cat > /tmp/identities.json <<JSON
{"identities": [{"name": "docmill",
                 "credentials": [{"accessKey": "$S3_ACCESS_KEY", "secretKey": "$S3_SECRET_KEY"}],
                 "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
JSON
# Behind S3, filer and volumes answer over HTTP too; with these they want a token that only S3 can sign.
export WEED_JWT_SIGNING_KEY="volume-$S3_SIGNING_KEY" WEED_JWT_SIGNING_READ_KEY="volume-read-$S3_SIGNING_KEY"
export WEED_JWT_FILER_SIGNING_KEY="filer-$S3_SIGNING_KEY" WEED_JWT_FILER_SIGNING_READ_KEY="filer-read-$S3_SIGNING_KEY"
exec weed server -dir=/data -ip.bind=0.0.0.0 -filer=true -s3=true -s3.port=8333 -s3.config=/tmp/identities.json \
    -master.volumeSizeLimitMB=1024 -volume.max=0 -master.telemetry=false
