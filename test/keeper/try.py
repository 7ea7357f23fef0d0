#!/usr/bin/env python3
"""bac-keeper and bac-fetch, with a store in a file. Prints TAP.

    test/keeper/try.py BAC-KEEPER BAC-FETCH
"""
import base64
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import struct
import tempfile
import threading
import time

import rig

keeper, fetch = map(os.path.abspath, sys.argv[1:3])
shown = failed = 0
SECRET = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"
SECOND = "sk-ant-api03-zyxwvutsrqponmlkjihgfedcba9876543210"
ONE = rig.use("u1", "api.example", "global/service/svc")


def ok(true, what, more=""):
    global shown, failed
    shown += 1
    failed += not true
    print(f"{'ok' if true else 'not ok'} {shown} - {what}", flush=True)
    if not true:
        print("# " + str(more).replace("\n", "\n# "))


def same(what, got, want):
    ok(got == want, what, f"got {got!r}, not {want!r}")


class Store:
    def __init__(self, top):
        self.path = f"{top}/config/bac/secrets.json"
        os.makedirs(os.path.dirname(self.path), 0o700)
        os.chmod(os.path.dirname(self.path), 0o700)
        self.entries = {}

    def write(self):
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w") as f:
            json.dump({"version": 1, "where": "file", "entries": self.entries}, f)

    def value(self, key, value):
        self.entries[key] = {"how": "value", "value": base64.b64encode(value.encode()).decode(), "masked": "", "created": 1, "meta": {}}
        self.write()

    def command(self, key, source, refresh):
        self.entries[key] = {"how": "command", "source": source, "refresh": refresh, "created": 1, "meta": {}}
        self.write()

    def read(self, key):
        with open(self.path) as f:
            return base64.b64decode(json.load(f)["entries"][key]["value"]).decode()


# ---- certificates ----

def pem(der, what="CERTIFICATE"):
    body = base64.encodebytes(der).decode().replace("\n", "")
    return f"-----BEGIN {what}-----\n" + "\n".join(re.findall(".{1,64}", body)) + f"\n-----END {what}-----\n"


def handshake(top, ca, leaf, name):
    """Python's ssl as the client of that leaf. None, or why not."""
    der, issuer, key, _ = leaf
    with open(f"{top}/chain.pem", "w") as f:
        f.write(pem(der) + pem(issuer) + pem(key, "PRIVATE KEY"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(f"{top}/chain.pem")
    client = ssl.create_default_context(cadata=ca)
    a, b = socket.socketpair()

    def serve():
        try:
            server.wrap_socket(b, server_side=True).close()
        except (ssl.SSLError, OSError):
            pass

    t = threading.Thread(target=serve)
    t.start()
    try:
        client.wrap_socket(a, server_hostname=name).close()
        return None
    except (ssl.SSLError, OSError) as e:
        return str(e)
    finally:
        a.close()
        t.join()
        b.close()


def openssl_verify(top, ca, leaf, *more):
    for name, data in (("ca", ca), ("leaf", pem(leaf[0]))):
        with open(f"{top}/{name}.pem", "w") as f:
            f.write(data)
    return subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", f"{top}/ca.pem", *more, f"{top}/leaf.pem"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def certificates(k, top):
    k.credentials(ONE, rig.use("u2", "*.star.example", "global/service/svc"))
    kind, leaf = k.leaf("api.example")
    same("a leaf for a host with a credential", kind, "leaf")
    ok("CN=bac sandbox web" in subprocess.run(["openssl", "x509", "-noout", "-subject", "-nameopt", "RFC2253"], input=k.ca, text=True,
                                              stdout=subprocess.PIPE).stdout, "the authority is named after the sandbox")
    same("Python's client accepts it", handshake(top, k.ca, leaf, "api.example"), None)
    ok("mismatch" in (handshake(top, k.ca, leaf, "other.example") or ""), "but not for another name")
    got = openssl_verify(top, k.ca, leaf, "-verify_hostname", "api.example")
    same("openssl verify accepts it, strictly", got.returncode, 0)
    same("one below a wildcard", handshake(top, k.ca, k.leaf("a.star.example")[1], "a.star.example"), None)
    same("no leaf for what is not opened: the conversation ends", k.leaf("other.example"), ("closed", None))
    k.until(rig.BREACH)
    k.new_proxy()
    old = k.ca
    code, why = k.push(rig.POLICY, "bac-net-policy 1\nr1\tglobal\tallow\tGET\t-\tread.example\nend 1\n")
    ok(code == 0 and k.ca != old, "a rule with a method makes another certificate of the authority", why)
    same("that host is certified now", handshake(top, k.ca, k.leaf("read.example")[1], "read.example"), None)
    ok("permitted" in (handshake(top, old, k.leaf("read.example")[1], "read.example") or ""), "by the new one alone")
    same("leaves of before stay good", handshake(top, k.ca, leaf, "api.example"), None)


# ---- values ----

def values(k, store):
    store.value("global/service/svc", SECRET)
    k.credentials(ONE)
    same("the value of an allowed use", k.value("u1", "api.example"), ("value", SECRET))
    k.ping()
    ok(len(k.marks) > 100, "its marks are told")
    store.value("global/service/svc", SECOND)
    same("it is kept", k.value("u1", "api.example"), ("value", SECRET))
    k.credentials(ONE)
    same("another value holds from the next push on", k.value("u1", "api.example"), ("value", SECOND))
    store.entries.clear()
    store.write()
    k.credentials(rig.use("u1", "api.example", "global/service/svc", state="missing"))
    same("one that was removed", k.value("u1", "api.example")[0], rig.MISSING)
    k.credentials()
    same("a use that is no more", k.value("u1", "api.example")[0], rig.LONGER)
    k.credentials()
    same("and long ago", k.value("u1", "api.example"), ("closed", None))
    ok("api.example:443" in k.until(rig.BREACH).text(), "the supervisor hears what the proxy did")
    k.new_proxy()


def refusals(k, store):
    store.value("global/service/svc", SECRET)
    uses = (ONE, rig.use("u2", "miss.example", "global/service/none", state="missing"),
            rig.use("u3", "kit.example", "global/service/svc", state="unapproved"), rig.use("u4", "gone.example", "global/service/gone"))
    k.credentials(*uses)
    for id, host, port, want in (("u2", "miss.example", 443, rig.MISSING), ("u3", "kit.example", 443, rig.UNAPPROVED),
                                 ("u4", "gone.example", 443, rig.FAILED), ("u1", "kit.example", 443, "closed"), ("u1", "api.example", 80, "closed"),
                                 ("u1", "api.example.evil.example", 443, "closed"), ("u9", "api.example", 443, "closed"),
                                 ("global/service/svc", "api.example", 443, "closed")):
        same(f"VALUE {id} for {host}:{port}", k.value(id, host, port)[0], want)
        if want == "closed":
            k.until(rig.BREACH)
            k.new_proxy()
    for what, data in (("an unknown type", b"\xc8"), ("nothing", b"\x21"), ("an order", bytes([rig.PING]) + b"\0\0\0\1"),
                       ("a length that lies", bytes([rig.VALUE]) + b"\0\0\0\1\xff\xff\xff\xff")):
        k.proxy.send(data)
        same(f"{what} ends the conversation", rig.hear(k.proxy), None)
        k.until(rig.BREACH)
        k.new_proxy()
    same("afterwards it serves on", k.value("u1", "api.example"), ("value", SECRET))


def commands(k, store, top):
    ran = f"{top}/ran"
    store.command("global/service/svc", f"echo x >> {ran}; printf made-0123456789abcdef-$(wc -l < {ran})", 0)
    k.credentials(ONE)
    k.ping()
    ok(not os.path.exists(ran), "a command is not run before somebody asks")
    same("its output is the value", k.value("u1", "api.example"), ("value", "made-0123456789abcdef-1"))
    same("with no time to keep it, it is run for each request", k.value("u1", "api.example"), ("value", "made-0123456789abcdef-2"))
    ok(len(k.marks) > 100, "and what it made is marked")
    store.command("global/service/svc", f"echo x >> {ran}; printf made-0123456789abcdef-$(wc -l < {ran})", 3600)
    k.credentials(ONE)
    same("with an hour", k.value("u1", "api.example"), ("value", "made-0123456789abcdef-3"))
    same("it is kept", k.value("u1", "api.example"), ("value", "made-0123456789abcdef-3"))
    store.command("global/service/svc", "echo who are you >&2; exit 3", 0)
    k.credentials(ONE)
    code, why = k.value("u1", "api.example")
    ok(code == rig.FAILED and "who are you" in why, "one that fails: its last line is the reason", why)
    fifo = f"{top}/fifo"
    os.mkfifo(fifo)
    store.command("global/service/svc", f"cat {fifo}", 0)
    k.credentials(ONE)
    for _ in range(50):
        k.send(rig.VALUE, rig.text("u1") + rig.text("api.example") + b"\1\273")
    with open(fifo, "w") as f:  # opens when the command does
        f.write("slow-0123456789abcdef")
    got = [rig.hear(k.proxy) for _ in range(50)]
    ok(all(what == rig.VALUE_IS and r.u32() and r.blob() == b"slow-0123456789abcdef" for what, r in got) and rig.silent(k.proxy),
       "fifty who ask at once get what one run gave")


TOKEN = rig.use("t", "auth.example", "global/oauth/svc.refresh", "token", placeholder="refresh-proxy-managed",
                placeholder2="access-proxy-managed", path="/v1/token", fields="access_token,refresh_token,expires_in,scope")
OAUTH = rig.use("r", "api.example", "global/oauth/svc.access", "oauth", placeholder="access-proxy-managed")


def tokens(k, store):
    store.entries.clear()
    store.write()
    k.credentials(TOKEN, OAUTH)
    same("tokens are kept", k.tokens("t", "auth.example", "access-0123456789abcdef", "refresh-0123456789abcdef"), ("KEPT", None))
    same("in the store", (store.read("global/oauth/svc.access"), store.read("global/oauth/svc.refresh")),
         ("access-0123456789abcdef", "refresh-0123456789abcdef"))
    same("and given out", k.value("r", "api.example"), ("value", "access-0123456789abcdef"))
    same("another access token alone", k.tokens("t", "auth.example", "access2-0123456789abcdef", ""), ("KEPT", None))
    k.push(rig.CREDENTIALS, rig.cred_text(TOKEN))
    same("leaves the refresh token", k.value("t", "auth.example"), ("value", "refresh-0123456789abcdef"))
    k.over(k.asked)


def lines_up():
    """Somebody waits for a lock of ours, or what they wait for is over."""
    for _ in range(1000):
        with open("/proc/locks", encoding="ascii") as f:
            if "-> FLOCK" in f.read():
                return True
        time.sleep(0.01)
    return False


def turns(k, store, env):
    """CR-10: two sandboxes renew one login at once."""
    store.value("global/oauth/svc.access", "access-1-0123456789abcdef")
    store.value("global/oauth/svc.refresh", "refresh-1-0123456789abcdef")
    other = rig.Keeper(keeper, fetch, env)
    for one in (k, other):
        one.credentials(TOKEN, OAUTH)
    same("the first has the refresh token", k.value("t", "auth.example"), ("value", "refresh-1-0123456789abcdef"))
    mine = k.asked
    other.send(rig.VALUE, rig.text("t") + rig.text("auth.example") + struct.pack(">H", 443))
    ok(lines_up() and rig.silent(other.proxy), "the second waits")
    same("new tokens", k.tokens("t", "auth.example", "access-2-0123456789abcdef", "refresh-2-0123456789abcdef"), ("KEPT", None))
    ok(rig.silent(other.proxy), "which do not end a turn")
    k.over(mine)
    same("the second has the newest", other.answer(), ("value", "refresh-2-0123456789abcdef"))
    same("and the access token of the first", other.value("r", "api.example"), ("value", "access-2-0123456789abcdef"))
    k.send(rig.VALUE, rig.text("t") + rig.text("auth.example") + struct.pack(">H", 443))
    ok(lines_up() and rig.silent(k.proxy), "the first waits again")
    same("the second ends, in its turn", other.end(), (0, 0))
    same("which leaves it", k.answer(), ("value", "refresh-2-0123456789abcdef"))
    k.over(k.asked)


# ---- processes ----

def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def hidden(k, store):
    store.value("global/service/svc", SECRET)
    k.credentials(ONE)
    k.value("u1", "api.example")
    for pid, what in ((k.pid, "bac-keeper"), (k.fetch_pid, "bac-fetch")):
        found = []
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    found.append(SECRET.encode() in f.read())
            except PermissionError:  # not dumpable: for root alone
                pass
        ok(not any(found), f"{what} has no value in environment or arguments")
        same(f"{what} is not dumpable: its /proc is root's", os.stat(f"/proc/{pid}/mem").st_uid, 0)
        with open(f"/proc/{pid}/limits") as f:
            ok(re.search(r"Max core file size +0 +0", f.read()), f"{what} leaves no core")
    s = status(k.pid)
    same("the keeper is sealed by seccomp", (s["Seccomp"], s["NoNewPrivs"]), ("2", "1"))


def dies(top, env, store):
    """The kernel has no filter for a signal: this is a flaw that somebody found."""
    store.value("global/service/svc", SECRET)
    k = rig.Keeper(keeper, fetch, env)
    k.credentials(ONE)
    k.value("u1", "api.example")
    before = set(os.listdir(top)) | set(os.listdir("."))
    os.kill(k.pid, signal.SIGSEGV)
    status_ = os.waitpid(k.pid, 0)[1]
    ok(status_ and not os.WCOREDUMP(status_), "a keeper that dies leaves no core", status_)  # a sanitizer makes a status of the signal
    same("and nothing else", set(os.listdir(top)) | set(os.listdir(".")), before)
    same("bac-fetch ends with it", os.waitstatus_to_exitcode(os.waitpid(k.fetch_pid, 0)[1]), 0)


def fetch_dies(k, store):
    store.value("global/service/svc", SECRET)
    k.credentials(ONE)
    k.value("u1", "api.example")
    os.kill(k.fetch_pid, signal.SIGKILL)
    os.waitpid(k.fetch_pid, 0)
    same("without bac-fetch, what is known is given out", k.value("u1", "api.example"), ("value", SECRET))
    k.credentials(ONE)
    same("and nothing else", k.value("u1", "api.example")[0], rig.FAILED)
    k.new_fetch()
    k.ping()
    k.ping()
    same("a new one is asked", k.value("u1", "api.example"), ("value", SECRET))


def main():
    with tempfile.TemporaryDirectory() as top:
        env = {"PATH": os.environ["PATH"], "HOME": top, **{f"XDG_{n}_HOME": f"{top}/{n.lower()}" for n in ("CONFIG", "STATE", "CACHE", "DATA")},
               "XDG_RUNTIME_DIR": f"{top}/run"}
        os.mkdir(f"{top}/run", 0o700)
        store = Store(top)
        store.write()
        k = rig.Keeper(keeper, fetch, env)
        certificates(k, top)
        values(k, store)
        refusals(k, store)
        commands(k, store, top)
        tokens(k, store)
        turns(k, store, env)
        hidden(k, store)
        fetch_dies(k, store)
        ok(not any(SECRET in s or SECOND in s for s in k.said), "no value in what it says for the log", k.said)
        same("both end with their supervisor", k.end(), (0, 0))
        dies(top, env, store)
    print(f"1..{shown}")
    sys.exit(failed > 0)


main()
