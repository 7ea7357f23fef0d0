#!/usr/bin/env python3
"""Raw virtqueues: what a guest's root can say to the file server without the kernel's driver.

garbage.py ROUNDS SEED    takes the virtio-fs device (PCI: machine q35) away from the kernel and fills its queues with
garbage. Says "done N" at the end; what the server makes of it is seen on the host.
"""
import ctypes
import glob
import mmap
import os
import random
import struct
import sys
import time

rounds, seed = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)


def find():
    """The PCI function whose virtio device is of type 26 (file system)."""
    for d in glob.glob("/sys/bus/virtio/devices/virtio*"):
        if int(open(d + "/device").read(), 16) == 26:
            return os.path.dirname(os.path.realpath(d))
    sys.exit("no virtio-fs device")


device = find()
open("/sys/bus/pci/drivers/virtio-pci/unbind", "w").write(os.path.basename(device))
config = os.open(device + "/config", os.O_RDWR)
command = struct.unpack("<H", os.pread(config, 2, 4))[0]
os.pwrite(config, struct.pack("<H", command | 6), 4)  # memory, bus master
common = notify = None
at = os.pread(config, 1, 0x34)[0]
while at:
    vendor, at_next, _, kind, bar = os.pread(config, 5, at)
    if vendor == 9 and kind in (1, 2):
        offset, length = struct.unpack("<II", os.pread(config, 8, at + 8))
        if kind == 1:
            common = (bar, offset)
        else:
            notify = (bar, offset, struct.unpack("<I", os.pread(config, 4, at + 16))[0])
    at = at_next
resource = os.open(f"{device}/resource{common[0]}", os.O_RDWR)
regs = mmap.mmap(resource, os.fstat(resource).st_size)
base, bell, step = common[1], notify[1], notify[2]


KINDS = {"B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32}


def rd(kind, reg):
    """One access of the register's own width, which neither struct nor slices promise."""
    return KINDS[kind].from_buffer(regs, base + reg).value


def wr(kind, reg, value):
    if kind == "Q":
        wr("I", reg, value)
        wr("I", reg + 4, value >> 32)
    else:
        KINDS[kind].from_buffer(regs, base + reg).value = value & (1 << 8 * ctypes.sizeof(KINDS[kind])) - 1


# Memory whose physical address is known: locked pages, looked up in pagemap.
SIZE = 64 * 4096
buf = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x2000 | 0x8000)  # LOCKED, POPULATE
view = (ctypes.c_char * SIZE).from_buffer(buf)
start = ctypes.addressof(view)
pagemap = open("/proc/self/pagemap", "rb")


def phys(offset):
    pagemap.seek((start + offset) // 4096 * 8)
    entry = struct.unpack("<Q", pagemap.read(8))[0]
    return (entry & ((1 << 55) - 1)) * 4096 + (start + offset) % 4096


for i in range(0, SIZE, 4096):
    buf[i] = 1
if phys(0) == 0:
    sys.exit("pagemap does not tell addresses")
DESC, AVAIL, USED, DATA = 0, 4 * 4096, 5 * 4096, 8 * 4096
N = 128  # a descriptor table of 2 KiB lies within one page


def setup(queue, sane):
    wr("H", 22, queue)
    wr("H", 24, N if sane else random.choice([1, 2, N, 1024]))
    for reg, where in ((32, DESC), (40, AVAIL), (48, USED)):
        wr("Q", reg, phys(where) if sane or random.random() < 0.7 else random.getrandbits(64))
    wr("H", 28, 1)


def negotiate():
    wr("B", 20, 0)
    end = time.monotonic() + 5
    while rd("B", 20) and time.monotonic() < end:
        pass
    wr("B", 20, 1)
    wr("B", 20, 3)
    for word in (0, 1):
        wr("I", 0, word)
        wr("I", 8, word)
        wr("I", 12, rd("I", 4) & (1 if word else 3 << 28))  # VERSION_1, INDIRECT_DESC, EVENT_IDX
    wr("B", 20, 11)


def address():
    kind = random.random()
    if kind < 0.5:
        return phys(DATA + 4096 * random.randrange((SIZE - DATA) // 4096)) + random.randrange(4096)
    return random.choice([0, 1, 0xFFFFFFFFFFFFFFFF, random.getrandbits(64), random.getrandbits(31), 0xA0000,
                          phys(DESC), phys(USED)])


def request():
    """Something that begins like a FUSE request, at DATA."""
    length = random.choice([0, 40, 48, 100, 0xFFFFFFFF, random.randrange(5000)])
    body = struct.pack("<IIQQIIII", length, random.randrange(60), random.getrandbits(64), random.choice([0, 1, 2,
                       random.getrandbits(64)]), random.choice([0, 1000, 0x7BAC0001]), 0, 1, 0)
    body += random.choice([b"../../etc/passwd\0", b"x" * 300 + b"\0", os.urandom(200), b"a\0b\0"])
    at = DATA + 4096 * random.randrange(8)
    buf[at:at + len(body)] = body
    return phys(at), len(body)


def chain():
    for i in range(N):
        length = random.choice([0, 1, 40, 80, 4096, 0x7FFFFFFF, 0xFFFFFFFF, random.getrandbits(32)])
        struct.pack_into("<QIHH", buf, DESC + 16 * i, address(), length, random.randrange(8), random.randrange(N + 4))
    for _ in range(20):  # and some that are nearly right
        i = random.randrange(N - 1)
        where, n = request()
        struct.pack_into("<QIHH", buf, DESC + 16 * i, where, n, 1, i + 1)
        struct.pack_into("<QIHH", buf, DESC + 16 * (i + 1), phys(DATA + 9 * 4096), 4096, 2, 0)


index = 0
for n in range(rounds):
    if n % 40 == 0:
        negotiate()
        index = 0
        buf[AVAIL:AVAIL + 4096] = bytes(4096)
        for q in (0, 1):
            setup(q, rounds < 200 or n % 160 != 120)
        wr("B", 20, 15)
    chain()
    for _ in range(random.randrange(1, 30)):
        struct.pack_into("<H", buf, AVAIL + 4 + 2 * (index % N), random.randrange(N + 8))
        index += 1
    jump = index if random.random() < 0.9 else random.getrandbits(16)
    struct.pack_into("<HH", buf, AVAIL, random.randrange(2), jump & 0xFFFF)
    ctypes.c_uint16.from_buffer(regs, bell + step * random.choice([0, 1, 1, 1])).value = random.choice([0, 1])
    if rd("B", 20) & 64 or n % 10 == 9:
        time.sleep(0.002)
print(f"done {rounds}", flush=True)
