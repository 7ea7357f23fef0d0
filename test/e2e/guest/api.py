"""What programs of a guest do with services that want credentials. api.py WHAT [ARGUMENTS]; prints one line for a scenario to compare.

httpx URL            python3-httpx with http2: version, status, body
many URL N           N requests on one h2 connection: how many were good, connections that the server counted, seconds
events URL N CLOCK   curl reads N events of a server: the largest and the median time between sending and reading, in ms. How far the server's
                     clock is ahead is asked at CLOCK before and after (the quickest of forty answers: half of its way is what it may be wrong by)
ws URL TOKEN         websockets: the server's first message, echoes of text and of 1 MiB, a ping
grpc HOST TOKEN      grpcio: unary, a stream, both, trailers
urllib URL [NAME=VALUE]  the standard library
"""
import asyncio
import os
import statistics
import subprocess
import sys
import time


def httpx_get(url, *headers):
    import httpx
    with httpx.Client(http2=True, timeout=60) as client:
        r = client.get(url, headers=dict(h.split("=", 1) for h in headers))
        print(r.http_version, r.status_code, r.text.strip())


def many(url, n):
    import httpx

    async def main():
        seen, good = set(), 0
        async with httpx.AsyncClient(http2=True, timeout=120, limits=httpx.Limits(max_connections=1)) as client:
            await client.get(url)
            begin = time.monotonic()
            for _ in range(int(n) // 50):
                for r in await asyncio.gather(*(client.get(url) for _ in range(50))):
                    good += r.status_code == 200 and r.http_version == "HTTP/2"
                    seen.add(r.json()["connection"])
            took = time.monotonic() - begin
        print(f"{good} good on {len(seen)} connections, {took:.1f} s")
    asyncio.run(main())


def clock(url):
    """How far the server is ahead, and how wrong that may be, in ms."""
    import http.client
    from urllib.parse import urlsplit
    where = urlsplit(url)
    conn, best = http.client.HTTPConnection(where.hostname, where.port or 80, timeout=20), None
    for _ in range(40):
        t0 = time.time_ns()
        conn.request("GET", where.path)
        theirs = int(conn.getresponse().read())
        t1 = time.time_ns()
        if not best or t1 - t0 < best[1]:
            best = (theirs - (t0 + t1) / 2, t1 - t0)
    return best[0] / 1e6, best[1] / 2e6


def events(url, n, clock_url):
    before = clock(clock_url)
    curl = subprocess.Popen(["curl", "-sSN", "--no-buffer", "-m", "60", url], stdout=subprocess.PIPE, bufsize=0)
    late, text = [], b""
    while data := os.read(curl.stdout.fileno(), 65536):
        now = time.time_ns()
        text += data
        while b"\n\n" in text:
            one, _, text = text.partition(b"\n\n")
            late.append((now - int(one.split()[2])) / 1e6)
    after = clock(clock_url)
    late = sorted(t + (before[0] + after[0]) / 2 for t in late)
    print(f"{len(late)} of {n} events, at most {late[-1]:.0f} ms late, half of them {statistics.median(late):.0f} ms, clocks known to "
          f"{max(before[1], after[1]):.1f} ms, drift {abs(before[0] - after[0]):.1f} ms" if late else "none")


def ws(url, token):
    import websockets

    async def main():
        async with websockets.connect(url, extra_headers={"Authorization": f"Bearer {token}"}, max_size=None, open_timeout=60) as s:
            first = await s.recv()
            await s.send("text")
            text = await s.recv()
            big = os.urandom(1 << 20)
            await s.send(big)
            same = await s.recv() == big
            await (await s.ping())
            print(first, text, same, "pong")
    asyncio.run(main())


def grpc_calls(host, token):
    import grpc
    channel = grpc.secure_channel(f"{host}:443", grpc.ssl_channel_credentials())
    meta = (("authorization", f"Bearer {token}"),)
    unary, call = channel.unary_unary("/test.Echo/Unary").with_call(b"one", metadata=meta, timeout=60)
    stream = channel.unary_stream("/test.Echo/Stream")(b"x", metadata=meta, timeout=60)
    parts = [m.decode() for m in stream]
    both = channel.stream_stream("/test.Echo/Both")(iter([b"a", b"b"]), metadata=meta, timeout=60)
    echoes = [m.decode() for m in both]
    ends = [dict(c.trailing_metadata()).get("x-end") for c in (call, stream, both)]
    print(unary.decode(), parts, echoes, ends)


def urllib_get(url, *headers):
    import urllib.request
    r = urllib.request.urlopen(urllib.request.Request(url, headers=dict(h.split("=", 1) for h in headers)), timeout=60)
    print(r.status, r.read().decode().strip())


try:
    {"httpx": httpx_get, "many": many, "events": events, "ws": ws, "grpc": grpc_calls, "urllib": urllib_get}[sys.argv[1]](*sys.argv[2:])
except Exception as e:  # noqa: BLE001
    print(f"{type(e).__name__}: {e}")
    sys.exit(1)
