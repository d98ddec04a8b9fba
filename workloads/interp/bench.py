# Runs one of the small programs below again and again, times it, and prints what it gave as a line of JSON:
#
#     python3 bench.py NAME --target-ms MS [--warm-up-ms MS]
#     python3 bench.py NAME --operations N
#     python3 bench.py --describe
#
# The programs and their results are those of bench.pl.
import json
import os
import re
import sys
import time

state = 1


def chance():
    global state
    state = (state * 1664525 + 1013904223) % 4294967296
    return state >> 16


SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "sa", "ti", "vo", "zu", "be"]


def word():
    n = chance() % 700
    return SYLLABLES[n % 10] + SYLLABLES[n // 10 % 10] + SYLLABLES[n // 100]


def words(n):
    return [word() for _ in range(n)]


def measurements(n):
    return ["%d %f %f\n" % (i, chance() / 65536, chance() / 65536) for i in range(n + 1)]


def document():
    rows = []
    for i in range(1, 61):
        name, title, text = words(3)
        rows.append(f'<tr class="row" id="r{i}"><td><a href="/{name}/{i}" title="{title}">{text}</a></td></tr>\n')
        if i % 5 == 0:
            rows.append(f"<!-- {name} -->\n")
    return "<html>\n<body>\n<table>\n" + "".join(rows) + "</table>\n</body>\n</html>\n"


def log_lines(n):
    lines = []
    for i in range(1, n + 1):
        user, host = words(2)
        at = "@" if i % 3 else " at "
        lines.append("%s%d%s%s%d.org GET /%s %d\n" % (user, i, at, host, chance() % 100, host, chance()))
    return lines


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def prepare_fib():
    return lambda: str(fib(20))


def prepare_movavg():
    lines = measurements(3000)

    def run():
        first, second = [], []
        printed, last = 0, ""
        for number, line in enumerate(lines, 1):
            hr, inp, outp = map(float, line.split())
            if number <= 60:
                first.insert(0, inp)
                second.insert(0, outp)
                continue
            first.pop()
            second.pop()
            first.insert(0, inp)
            second.insert(0, outp)
            if number % 10 == 0:
                sumi = sumo = 0
                for i in range(1, 21):
                    sumi += first[i] * (20 / i)
                    sumo += second[i] * (20 / i)
                last = "%f %f %f" % (hr, sumi / 60, sumo / 60)
                printed += 1
        return f"{printed} lines, {last}"

    return run


def prepare_wordcount():
    text = " ".join(words(4000))

    def run():
        count, total = {}, 0
        for one in text.split():
            count[one] = count.get(one, 0) + 1
            total += 1
        top = min(count, key=lambda one: (-count[one], one))
        return f"{total} words, {len(count)} different, {top} {count[top]}"

    return run


def prepare_regex():
    text = "".join(log_lines(600))
    pattern = re.compile(r"([a-z]+)([0-9]+)@([a-z]+)([0-9]+)\.([a-z]+)")

    def run():
        found = total = 0
        for match in pattern.finditer(text):
            found += 1
            total += int(match[2]) + int(match[4]) + len(match[1]) + len(match[3])
        return f"{found} found, {total}"

    return run


def prepare_hash():
    keys = ["k%d" % (chance() % 20000) for _ in range(10000)]

    def run():
        seen, hits = {}, 0
        for i in range(5000):
            key = keys[i]
            seen[key] = seen.get(key, 0) + 1
        for i in range(5000, 10000):
            if keys[i] in seen:
                hits += 1
        return f"{len(seen)} different, {hits} found"

    return run


def prepare_sort():
    numbers = [chance() * 65536 + chance() for _ in range(3000)]
    names = words(2000)

    def run():
        ordered = sorted(numbers)
        by_name = sorted(names)
        total = 0
        for at, value in enumerate(ordered, 1):
            total = (total + at * (value % 1000)) % 1000003
        return f"{total} {by_name[0]} {by_name[1000]} {by_name[-1]}"

    return run


def prepare_string():
    def run():
        text = ""
        for i in range(4000):
            text += str(i) + ","
        parts = text.split(",")
        parts.pop()
        joined = "-".join(reversed(parts)).upper().replace("7", "seven")
        return f"{len(joined)} {joined[:20]}"

    return run


def prepare_html():
    text = document()
    comment = re.compile(r"<!--.*?-->", re.S)
    end = re.compile(r"</([a-z]+)>")
    tag = re.compile(r"<([a-z]+)([^>]*)>")
    plain = re.compile(r"[^<]+")
    attribute = re.compile(r'([a-z]+)="([^"]*)"')

    def run():
        at = tags = ends = attributes = comments = size = 0
        while at < len(text):
            if match := comment.match(text, at):
                comments += 1
            elif match := end.match(text, at):
                ends += 1
            elif match := tag.match(text, at):
                tags += 1
                for _ in attribute.finditer(match[2]):
                    attributes += 1
            elif match := plain.match(text, at):
                size += len(match[0])
            else:
                raise ValueError("no token")
            at = match.end()
        return f"{tags} tags, {ends} ends, {attributes} attributes, {comments} comments, {size} bytes"

    return run


def describe():
    import sysconfig

    told = lambda name: str(sysconfig.get_config_var(name) or "")
    print(json.dumps({
        "path": os.readlink("/proc/self/exe"),
        "version": "%d.%d.%d" % sys.version_info[:3],
        "implementation": sys.implementation.name,
        "compiler": sys.version.partition("[")[2].rstrip("]"),
        "CFLAGS": told("CFLAGS"),
        "configured with": told("CONFIG_ARGS"),
        "debug build": "yes" if told("Py_DEBUG") == "1" else "no",
        "free-threaded": "yes" if told("Py_GIL_DISABLED") == "1" else "no",
        "linked with": "libpython" if told("Py_ENABLE_SHARED") == "1" else "itself",
    }))


def main():
    if sys.argv[1] == "--describe":
        return describe()
    name, option = sys.argv[1], dict(zip(sys.argv[2::2], map(int, sys.argv[3::2])))
    run = globals()["prepare_" + name]()
    clock = time.perf_counter_ns
    total, result = 0, ""

    def turn(rounds):
        nonlocal total, result
        total += rounds
        began = clock()
        for _ in range(rounds):
            result = run()
        return clock() - began

    if "--operations" in option:
        rounds = option["--operations"]
        took = turn(rounds)
    else:
        target, warm_up = option["--target-ms"] * 1_000_000, option.get("--warm-up-ms", 0) * 1_000_000
        began, rounds = clock(), 1
        took = turn(rounds)
        while took < target / 4:
            rounds *= 2
            took = turn(rounds)
        # An operation that takes that long is the sample itself.
        if not (rounds == 1 and took >= target and not warm_up):
            rounds = max(1, int(rounds * target / took))
            while clock() - began < warm_up:
                turn(rounds)
            took = turn(rounds)
    print(json.dumps({
        "workload": "interp:python." + name,
        "operations": rounds,
        "total_operations": total,
        "elapsed_ns": took,
        "unit": "ops/s",
        "result": result,
    }))


main()
