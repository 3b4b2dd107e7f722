#!/usr/bin/env python3
"""label_load: load test of the labeling page: 50 annotators post 10,000 cards through HTTP; measures the response time.

usage: label_load.py PAL [--people 50] [--cards 10000] [--rate 10] [--json F]     (standard library only)
Each annotator has one connection, posts at most `rate` cards per second and requests the next cards as the page does.
Afterward the ledger must hold every acknowledged card exactly once; otherwise the exit code is 1.
"""
import argparse
import asyncio
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launch"))
parser = argparse.ArgumentParser()
parser.add_argument("pal")
parser.add_argument("--people", type=int, default=50)
parser.add_argument("--cards", type=int, default=10000)
parser.add_argument("--members", type=int, default=2)
parser.add_argument("--rate", type=float, default=10)
parser.add_argument("--json")
args = parser.parse_args()
sys.argv = [sys.argv[0], args.pal]   # run_case reads it
from label_case import Server, rows  # noqa: E402
from run_case import CONFIG, make_set  # noqa: E402


class Person:
    def __init__(self, port):
        self.port, self.cookie, self.reader, self.writer = port, "", None, None

    async def ask(self, method, path, body=None):
        host = f"127.0.0.1:{self.port}"
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {self.cookie}\r\nOrigin: http://{host}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + data)
        status = int((await self.reader.readline()).split()[1])
        length = 0
        while (line := await self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                length = int(value)
            elif name.lower() == "set-cookie":
                self.cookie = value.split(";")[0].strip()
        return status, await self.reader.readexactly(length)


async def answer(person, link, share, taken, times):
    status, _ = await person.ask("POST", "/api/enter", {"token": link[link.index("=") + 1:]})
    assert status == 200, status
    await asyncio.sleep(random.random())
    while len(share) > 0:
        status, found = await person.ask("GET", "/api/questions?n=4")
        assert status == 200, status
        for card in json.loads(found)["cards"]:
            if not share:
                return
            share.pop()
            name = uuid.uuid4().hex
            body = {"uuid": name, "query": card["query"], "ticket": card["ticket"], "seconds": 1, "answers": [[m, random.choice(["yes", "no"])] for m in card["members"]]}
            start = time.perf_counter()
            status, text = await person.ask("POST", "/api/answer", body)
            times.append(time.perf_counter() - start)
            assert status == 200, (status, text)
            taken[name] = (card["query"], body["answers"])
            await asyncio.sleep(max(0.0, 1 / args.rate - times[-1]))


def fill(ledger):
    db = sqlite3.connect(ledger)
    for table in ("members", "queries"):
        db.execute(f"delete from {table}")
    for q in range(1, args.cards + 10 * args.people):
        db.execute("insert into queries values (?, 'captcha', ?, -1, 'load', 1, 0, 0)", (q, q % 90))
        db.executemany("insert into members values (?, ?, ?, 1, 1, 0, 0)", [(q, (q + 1 + m) % 90, m) for m in range(args.members)])
    db.commit()
    db.close()


def main():
    with tempfile.TemporaryDirectory(prefix="pal-load-") as folder:
        os.makedirs(f"{folder}/idx")
        make_set(f"{folder}/idx")
        with open(f"{folder}/c.yaml", "w") as f:
            f.write(CONFIG)
        with open(f"{folder}/users", "w") as f:
            f.writelines(f"p{n}\n" for n in range(args.people))
        pal = os.path.abspath(args.pal)
        os.system(f"cd {folder} && {pal} data import idx idx set.h5 > /dev/null")
        Server(pal, folder, "c.yaml", "oracle.sampler=random", "--run-dir", "run").stop()
        fill(f"{folder}/run/ledger.sqlite")
        server = Server(pal, folder, "run", "--users", "users")
        share, taken, times = list(range(args.cards)), {}, []
        start = time.time()

        async def all_people():
            await asyncio.gather(*(answer(Person(server.port), link, share, taken, times) for link in server.links.values()))
        try:
            asyncio.run(all_people())
            seconds = time.time() - start
        finally:
            server.stop()
        stands = rows(f"{folder}/run/ledger.sqlite", "select uuid, query, j, answer from answers where superseded_by is null")
        sent = {(f"{name}-{m}", query, m, verdict) for name, (query, answers) in taken.items() for m, verdict in answers}
        lost, doubled = len(sent - set(stands)), len(stands) - len(set((q, j) for _, q, j, _ in stands))
        times.sort()
        result = {"name": "label_load", "params": {"people": args.people, "cards": len(taken), "members": args.members, "rate": args.rate}, "seconds": round(seconds, 1),
                  "p50_ms": round(1000 * times[len(times) // 2], 1), "p99_ms": round(1000 * times[int(0.99 * len(times))], 1), "max_ms": round(1000 * times[-1], 1),
                  "lost": lost, "doubled": doubled, "unasked": len(set(stands) - sent)}
        print(json.dumps(result))
        if args.json:
            with open(args.json, "w") as f:
                json.dump({"results": [result]}, f)
        return 1 if lost or doubled or result["unasked"] or len(taken) != args.cards else 0


sys.exit(main())
