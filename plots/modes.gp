#: title training and validation loss, validation with running and with batch statistics (Regularized BN)
#: runs 1-4 BN.h5 [MORE.h5...]
#: samples nlp_bn cv_bn
#: size 6.75 2.5
#: table t stat-curve {run}
#: curves t x epoch y loss buckets 60
#: table v stat-curve {run} --evals
#: curves v x epoch y valid_loss,valid_loss_batch
# A panel per run: training loss (median and range of each 1/60 of training) and validation loss in both modes of
# BN. What lies between the two validation curves is what the running statistics cost; a run without batch
# statistics in validation has two curves.

legend_count = v_valid_loss_batch_finite > 0 ? 3 : 2
legend_text[1] = 'training'
legend_type[1] = 8
legend_text[2] = 'validation, running statistics'
legend_type[2] = 1
legend_text[3] = 'validation, batch statistics'
legend_type[3] = 2
eval LEGEND_ROOM
legend_height = legend_height + 0.14
gap_x = runs > 2 ? 0.5 : 0.72
# Before any range is set: stats leaves out what is outside of one.
array batch_curve[v_curves]
array low[runs]
array high[runs]
do for [r=1:runs] {
    low[r] = 1e300
    high[r] = -1e300
}
WIDEN = 'low[r] = S_min < low[r] ? S_min : low[r]; high[r] = S_max > high[r] ? S_max : high[r]'
do for [k=1:t_curves] {
    r = t_run[k]
    stats t index k-1 using t_loss_low nooutput name 'S'
    eval WIDEN
    stats t index k-1 using t_loss_high nooutput name 'S'
    eval WIDEN
}
do for [k=1:v_curves] {
    r = v_run[k]
    stats v index k-1 using v_valid_loss nooutput name 'S'
    eval WIDEN
    batch_curve[k] = 0
    if (v_valid_loss_batch_finite > 0) {
        stats v index k-1 using (valid(v_valid_loss_batch) && column(v_valid_loss_batch) > 0 ? 1 : 0) nooutput name 'BATCH'
        batch_curve[k] = BATCH_sum
    }
    if (batch_curve[k] > 0) {
        stats v index k-1 using v_valid_loss_batch nooutput name 'S'
        eval WIDEN
    }
}

set xlabel 'epoch' offset 0,0.7
set xrange [0:*]
set autoscale xfix
set title noenhanced font ',7' offset 0,-0.7
set multiplot
do for [r=1:runs] {
    eval panel(r, runs, 1, 1)
    set title run_label[r]
    set ylabel (r == 1 ? 'loss (nats)' : '') offset 0.6,0
    eval linear_y(low[r], high[r])
    command = ''
    do for [k=1:t_curves] {
        if (t_run[k] == r) {
            command = command.sprintf('t index %d using t_x:t_loss_low:t_loss_high with filledcurves linetype 8 fillstyle transparent solid 0.28 noborder, t index %d using t_x:t_loss with lines linetype 8', k - 1, k - 1)
        }
    }
    do for [k=1:v_curves] {
        if (v_run[k] == r) {
            command = command.sprintf(', v index %d using v_x:v_valid_loss with linespoints linetype 1', k - 1)
            if (batch_curve[k] > 0) {
                command = command.sprintf(', v index %d using v_x:v_valid_loss_batch with linespoints linetype 2', k - 1)
            }
        }
    }
    eval 'plot '.command
}
eval LEGEND_DRAW
unset multiplot
