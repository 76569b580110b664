"""held_run.py FILE SIGNAL COMMAND...: runs the command, which prints a line now and then and makes FILE
on its way, and ends it by the signal (KILL, TERM) when FILE is there. Its lines go into a pipe that holds
one; they are taken only while FILE is not there, so however fast the command is and however slow this
program, the command waits at most two lines later. Says so when FILE does not come."""
import os
import select
import signal
import subprocess
import sys

F_SETPIPE_SZ = 1031  # fcntl has the name from Python 3.10 on


def one_line_pipe():
    import fcntl
    read, write = os.pipe2(os.O_DIRECT)  # every write a packet, of which a page holds one
    fcntl.fcntl(write, F_SETPIPE_SZ, 4096)
    return read, write


def main():
    path, name, *command = sys.argv[1:]
    read, write = one_line_pipe()
    run = subprocess.Popen(command, stdout=write)
    os.close(write)
    while True:
        waiting = select.select([read], [], [], 0.01)[0]
        if os.path.exists(path):  # looked for behind the line: that one was written before FILE
            break
        if waiting and not os.read(read, 4096):
            print(path, "does not come")
            break
    run.send_signal(getattr(signal, "SIG" + name))
    while os.read(read, 4096):  # what it still has to say
        pass
    run.wait()


main()
