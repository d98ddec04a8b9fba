"""Runs a command, and changes processes that it starts just when they have executed their program.

meddle.py MATCH CHANGE COMMAND...: both are Python, about `pid`; from the fifth process of which MATCH is true, each
is changed. Whoever forked it goes on only then: so it looks at what was changed already.
"""
import ctypes
import os
import sys
import time

CONT, GETEVENTMSG, SEIZE = 7, 0x4201, 0x4206
OPTIONS = 2 | 4 | 8 | 16  # forks, vforks, clones and executions
FORK, EXEC, STOP = 1, 4, 128
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def read(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def replace(pid, name, old, new):
    """Writes over a part of the strings that a program was executed with, as long as what was there."""
    assert len(old) == len(new)
    fields = read(pid, "stat").rsplit(b")", 1)[1].split()
    start = int(fields[{"cmdline": 48, "environ": 50}[name] - 3])
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start + read(pid, name).index(old))
        memory.write(new)


def children_of_launcher(pid):
    parent = int(read(pid, "stat").rsplit(b")", 1)[1].split()[1])
    return b"__launcher" in read(parent, "cmdline")


def go_on(pid, signal=0):
    libc.ptrace(CONT, pid, None, signal)


def main(match, change, command):
    go, told = os.pipe()
    first = os.fork()
    if first == 0:
        os.read(go, 1)
        os.execvp(command[0], command)
    assert libc.ptrace(SEIZE, first, None, OPTIONS) == 0, os.strerror(ctypes.get_errno())
    os.write(told, b"x")
    held, done, matched, result = {}, set(), 0, 1
    match, change = compile(match, "match", "eval"), compile(change, "change", "exec")
    while True:
        try:
            pid, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            return result
        if not os.WIFSTOPPED(status):
            if pid == first:
                result = os.waitstatus_to_exitcode(status)
            done.add(pid)
            if pid in held:
                go_on(held.pop(pid))
            continue
        event, signal = status >> 16, os.WSTOPSIG(status)
        if event == FORK and b"weigh" in os.readlink(f"/proc/{pid}/exe").encode():
            child = ctypes.c_ulong()
            libc.ptrace(GETEVENTMSG, pid, None, ctypes.byref(child))
            # The child may have been told of first.
            if child.value not in done:
                held[child.value] = pid
                continue
        if event == EXEC:
            done.add(pid)
            is_worker = children_of_launcher(pid)
            if is_worker and eval(match, globals() | {"pid": pid}):
                matched += 1
                if matched > 4:
                    exec(change, globals() | {"pid": pid})
            if pid in held:
                go_on(held.pop(pid))
            if is_worker:
                # Time to look at it: a process has one tracer, so here the launcher cannot hold it.
                time.sleep(0.01)
        go_on(pid, 0 if event else signal)


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
