#: title Regularized BN: discrepancy of the last batch-normalized site against the gap to LN, over tasks
#: runs 2- LN.h5 BN.h5 RBN.h5 [MORE.h5...]
#: size 6.5 2.6
#: metric valid_f1,valid_uas_nopunct,valid_accuracy
#: table t stat-gap {runs} --metric {metric}
# plots/tidgap.gp with a colour for each task instead of each run, seeds being points of one colour; left BN, right RBN.
# Gap in points of the task's metric (percent), positive where the run is better than LN with the same seed; its axis is
# asinh's, since one task's gaps are tens of points and the others' about one.

array tid_of[runs]
array gap_of[runs]
array task_of[runs]
stats t using (tid_of[int(column(0))+1] = cell(t_tid_total), gap_of[int(column(0))+1] = cell(t_gap), 1) nooutput
legend_count = 0
low = 0.0
high = 0.0
right = 0.0
do for [r=1:runs] {
    k = 0
    do for [i=1:legend_count] { if (legend_text[i] eq run_task[r]) { k = i } }
    if (k == 0) {
        legend_count = legend_count + 1
        k = legend_count
        legend_text[k] = run_task[r]
        legend_type[k] = k
        legend_mark[k] = 1
    }
    task_of[r] = k
    if (tid_of[r] == tid_of[r] && gap_of[r] == gap_of[r]) {
        if (gap_of[r] < low) { low = gap_of[r] }
        if (gap_of[r] > high) { high = gap_of[r] }
        if (tid_of[r] > right) { right = tid_of[r] }
    }
}
if (right == 0) { eval refuse('no run with batch statistics') }
eval LEGEND_ROOM
gap_y = 0.2
pad_left = 0.6
set xrange [0:right * 1.1] noextend
set pointsize 0.7
set arrow 99 from graph 0, first 0 to graph 1, first 0 nohead linetype 958 linewidth 0.5
set multiplot
do for [side=1:2] {
    norm = side == 1 ? 'bn' : 'rbn'
    eval panel(side, 2, 1, 1)
    eval linear_y(low, high)
    set nonlinear y via asinh(y) inverse sinh(y)
    set yrange [low - 0.3 * abs(low) - 0.1:high + 0.3 * abs(high) + 0.1] noextend
    set ytics (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30)
    set xlabel 'total TID of the last site, '.norm.' (%)' offset 0,0.7 noenhanced
    set ylabel (side == 1 ? 'gap to LN, points (scale of asinh)' : '') offset 0,0 noenhanced
    command = ''
    do for [r=1:runs] {
        if (run_norm[r] eq norm && tid_of[r] == tid_of[r] && gap_of[r] == gap_of[r]) {
            command = command.sprintf(', t every ::0::0 using (tid_of[%d]):(gap_of[%d]) with points linetype task_of[%d]', r, r, r)
        }
    }
    if (strlen(command) > 0) { eval 'plot '.command[3:*] }
}
unset arrow 99
eval LEGEND_DRAW
unset multiplot
