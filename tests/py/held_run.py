"""held_run.py FILE SIGNAL COMMAND...: runs the command and ends it by the signal (KILL, TERM) when FILE exists. The
command prints a line now and then and creates FILE. Its lines go into a pipe that holds one line and is read only
until FILE exists. So the command waits at most two lines later, however fast it is or slow this program. Prints a
message if FILE does not appear."""
import os
import select
import signal
import subprocess
import sys

F_SETPIPE_SZ = 1031  # fcntl has the name from Python 3.10 on


def one_line_pipe():
    import fcntl
    read, write = os.pipe2(os.O_DIRECT)  # each write is a packet; a page holds one
    fcntl.fcntl(write, F_SETPIPE_SZ, 4096)
    return read, write


def main():
    path, name, *command = sys.argv[1:]
    read, write = one_line_pipe()
    run = subprocess.Popen(command, stdout=write)
    os.close(write)
    while True:
        waiting = select.select([read], [], [], 0.01)[0]
        if os.path.exists(path):  # checked after the line, which was written before FILE
            break
        if waiting and not os.read(read, 4096):
            print(path, "does not come")
            break
    run.send_signal(getattr(signal, "SIG" + name))
    while os.read(read, 4096):  # its remaining output
        pass
    run.wait()


main()
