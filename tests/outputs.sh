#!/bin/sh
# usage: outputs.sh
# Fails if a source makes or truncates a file without src/base/output_file.c: open with O_CREAT or
# O_TRUNC, creat, mkstemp, fopen for writing. A row of the table allows one source a number of them.
cd "$(dirname "$0")/.." || exit 1
#   source                               calls  reason
allowed='
    src/base/output_file.c                   1  the one way
    src/hdf5/h5_write_driver.c               2  HDF5 gives the flags; new files are O_EXCL
    src/record/part_file.c                   1  O_EXCL: an empty file that keeps a name
    src/plot/plot_process.c                  1  in the temporary folder of the process
    src/plot/report/plot_report_sections.c   1  in the temporary folder
    src/plot/report/plot_report.c            1  in the temporary folder
    src/plot/report/plot_report_folder.c     1  O_EXCL: the mark of the temporary folder
    src/plot/plot_curves.c                   1  in the temporary folder
    src/plot/plot_reuse.c                    1  in the temporary folder
    src/plot/plot_table_cache.c              1  in the temporary folder
    src/plot/plot_gnuplot.c                  4  in the temporary folder; mkstemp beside the figure
'
calls='O_CREAT|O_TRUNC|[^a-z_]creat\(|mkstemp\(|fopen\([^;]*"[wa]'
status=0
# names of sources have no blanks
# shellcheck disable=SC2013
for file in $(grep -rlE "$calls" src analyses --include='*.c' --include='*.h'); do
    count=$(grep -cE "$calls" "$file")
    most=$(echo "$allowed" | awk -v file="$file" '$1 == file { print $2 }')
    [ "$count" -le "${most:-0}" ] && continue
    grep -nE "$calls" "$file" | sed "s|^|$file:|"
    echo "$file: makes files in $count places, not ${most:-0}: use base/output_file.h" >&2
    status=1
done
exit $status
