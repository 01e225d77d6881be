#!/bin/sh
# Makes the JPEG files of this folder, and the pixels (.ppm) that libjpeg decodes them to, with cjpeg and djpeg
# (Debian: libjpeg-turbo-progs).
set -eu
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
# 37 columns and 29 rows: waves of a few periods, so that the interpolation of colours matters little.
awk 'BEGIN {
    print "P3 37 29 255"
    for (y = 0; y < 29; y++) for (x = 0; x < 37; x++)
        printf "%d %d %d\n", 128 + 90 * sin(x / 7), 128 + 80 * cos(y / 6), 128 + 70 * sin((x + y) / 9)
}' >"$scratch/in.ppm"
echo '0; 1; 2;' >"$scratch/apart"
echo '0; 1 2;' >"$scratch/two"
make() {
    name=$1
    shift
    cjpeg -quality 95 "$@" "$scratch/in.ppm" >"$name.jpg"
    djpeg -ppm "$name.jpg" >"$name.ppm"
}
make apart-rows -sample 1x2,1x1,1x1 -scans "$scratch/apart"
make apart-both -sample 2x2,1x1,1x1 -scans "$scratch/apart" -restart 3B
make apart-none -sample 1x1,1x1,1x1 -scans "$scratch/apart" -restart 5B
make two-scans -sample 2x1,1x1,1x1 -scans "$scratch/two"
make finer-columns -sample 1x1,2x1,2x1
make finer-rows -sample 1x1,1x2,1x2 -restart 2B
make finer-both -sample 1x1,2x2,2x2 -progressive
make quarter -sample 4x1,1x1,1x1
make third -sample 3x1,1x1,1x1 -scans "$scratch/apart"
