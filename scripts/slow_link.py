"""Joins two network interfaces of Linux by a link of its own rate and latency: `slow_link.py ONE OTHER MBIT_S MS`.

ONE and OTHER are TAP devices, which usually are ports of two bridges. Each frame leaves when those before it have, and arrives
so many milliseconds later. Needs no queueing discipline of the kernel, whose modules a container may not have.
"""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 1 << 17


def opened(name):
    """The file of a TAP device."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


class Lane:
    """Frames on their way in one direction."""

    def __init__(self, into):
        self.into, self.free, self.frames = into, 0.0, collections.deque()

    def take(self, frame, rate, latency):
        """Puts a frame behind those that have not left."""
        self.free = max(self.free, time.monotonic()) + len(frame) / rate
        self.frames.append((self.free + latency, frame))

    def deliver(self):
        """Passes on what has arrived."""
        while self.frames and self.frames[0][0] <= time.monotonic():
            os.write(self.into, self.frames.popleft()[1])


def main():
    one, other = (opened(name) for name in sys.argv[1:3])
    rate, latency = float(sys.argv[3]) * 1e6 / 8, float(sys.argv[4]) * 1e-3
    lanes = {one: Lane(other), other: Lane(one)}
    print("ready", flush=True)
    while True:
        due = [lane.frames[0][0] for lane in lanes.values() if lane.frames]
        wait = max(min(due) - time.monotonic(), 0.0) if due else None
        for device in select.select(list(lanes), [], [], wait)[0]:
            lanes[device].take(os.read(device, FRAME), rate, latency)
        for lane in lanes.values():
            lane.deliver()


if __name__ == "__main__":
    main()
