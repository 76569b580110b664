#: title training and validation loss of any runs
#: question healthy
#: runs 1- RUN.h5 [MORE.h5...]
#: samples cv_bn cv_ln
#: size 6.75 2.3
#: tasks one
#: controls x y scale smooth steps
#: stat loss
#: table each stat-curve {run} --stat step,{stat} --buckets 1 --phase {steps}
#: table all stat-curve {runs} --stat {stat} --buckets 1 --phase {steps}
#: table t stat-curve {run} --stat step,{stat} --buckets {buckets} --phase {steps}
#: curves t x epoch y {stat} buckets 100
#: table? v stat-curve {run} --evals --phase {steps} --metric valid_loss,valid_accuracy
#: curves v x epoch y valid_loss,valid_accuracy
# Any runs side by side; `converge` shows how LN variants differ (AdaNorm figures 1-3). Training loss: median and range of each 1/100 of training; --stat NAME draws another column of the steps
# in its place, also one that the runs declare, without validation losses. Runs without it are left out. The table `all` fails when none has it, `each` tells which run cannot be read. Validation loss in running statistics, as the
# run measured it; where no run has any, the training loss takes the whole width.

panels = stat eq 'loss' && v_valid_loss_finite > 0 ? 2 : 1
array drawn[t_curves]
do for [k=1:t_curves] {
    eval span(sprintf('t index %d', k - 1), 't_y1')
    if (span_count > 0) {
        legend_count = legend_count + 1
        drawn[legend_count] = k
        legend_text[legend_count] = run_label[t_run[k]]
        legend_type[legend_count] = t_run[k]
    }
}
lines = legend_count
band = lines > 3 ? 0.15 : 0.28
eval NOTE(stat eq 'loss' && v_valid_loss_finite == 0 ? 'No evaluation has a finite valid_loss: only training loss is drawn.' : '')
eval LEGEND_ROOM
gap_x = 0.66
set xlabel t_over offset 0,0.7

eval span('t', 't_x')
first = span_low
last = span_high
if (v_curves > 0) {
    eval span('v', 'v_x')
    first = span_count > 0 && span_low < first ? span_low : first
    last = span_count > 0 && span_high > last ? span_high : last
}
eval WIDE_TICS(abs_high(t_y1_least, t_y1_largest), panels == 2 ? abs_high(v_valid_loss_least, v_valid_loss_largest) : 0)
eval SIDE_BY_SIDE(panels)
eval epoch_x(first, last, panel_width(stacked ? 1 : panels) > 2.2 ? 8 : int(panel_width(panels) / 0.3))
set multiplot
eval panel(1, panels, 1, 1)
eval of_unit(stat_unit)
eval linear_y(t_y1_least, t_y1_largest)
set ylabel (stat eq 'loss' ? 'training loss'.train_unit : stat_name(stat)) noenhanced offset 0.2,0
plot for [i=1:lines] t index drawn[i]-1 using t_x:t_y1_low:t_y1_high \
         with filledcurves linetype t_run[drawn[i]] fillstyle transparent solid band noborder, \
     for [i=1:lines] t index drawn[i]-1 using t_x:t_y1 with lines linetype t_run[drawn[i]]
if (panels == 2) {
    eval panel(2, panels, 1, 1)
    eval linear_y(v_valid_loss_least, v_valid_loss_largest)
    set ylabel 'validation loss'.valid_unit noenhanced offset 0.2,0
    plot for [k=1:v_curves] v index k-1 using v_x:v_valid_loss with linespoints linetype v_run[k]
}
eval LEGEND_DRAW
unset multiplot
