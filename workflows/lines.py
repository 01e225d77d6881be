"""The lines of a picture, on all ranks: mpirun -n 4 python lines.py IN OUT"""

import sys

import horus_image as hi
from horus_image import filters

with hi.session() as session:
    image = hi.open(sys.argv[1]).luminance()
    lines = filters.convrot(image, theta_step=15.0, sigma_u=[5.0], sigma_v=[2.0])
    lines.save(sys.argv[2])
    strongest = lines.max()
    if session.rank == 0:
        print(f"{session.ranks} ranks, strongest response {strongest:.3f}")
