#: title training and validation loss, validation with running and with batch statistics (Regularized BN)
#: question healthy
#: runs 1-4 BN.h5 [MORE.h5...]
#: samples nlp_bn cv_bn
#: size 6.75 2.5
#: controls x y scale smooth steps
#: table t stat-curve {run} --buckets {buckets} --phase {steps}
#: curves t x epoch y loss buckets 60
#: table? v stat-curve {run} --evals --phase {steps} --metric valid_loss,valid_loss_batch
#: curves v x epoch y valid_loss,valid_loss_batch
# A panel per run: training loss (median and range of each 1/60 of training) and validation loss in both modes of
# BN. What lies between the two validation curves is what the running statistics cost; a run without batch
# statistics in validation has two curves.

legend_count = v_valid_loss_batch_finite > 0 ? 3 : 2
legend_text[1] = 'training'
legend_type[1] = 958
legend_text[2] = 'validation, running statistics'
legend_type[2] = 951
legend_mark[2] = 2
legend_mark[3] = 2
legend_text[3] = 'validation, batch statistics'
legend_type[3] = 952
eval LEGEND_ROOM
legend_height = legend_height + 0.14
gap_x = runs > 2 ? 0.5 : 0.72
# Titles as wide as their panels, in up to three lines that end behind a space or a comma where there is one.
title_most = int((panel_width(runs) + 2 * pad_right) / 0.062)
line_end(text, n) = n < 2 ? title_most : text[n:n] eq ' ' || text[n:n] eq ',' ? n : line_end(text, n - 1)
folded(text, lines) = strlen(text) <= title_most || lines == 1 ? cut(text, title_most) : \
    text[1:line_end(text, title_most)]."\n".folded(text[line_end(text, title_most)+1:*], lines - 1)
title_lines(text, lines) = strlen(text) <= title_most || lines == 1 ? 1 : \
    1 + title_lines(text[line_end(text, title_most)+1:*], lines - 1)
most_lines = 1
do for [r=1:runs] {
    if (title_lines(run_label[r], 3) > most_lines) { most_lines = title_lines(run_label[r], 3) }
}
legend_height = legend_height + 0.12 * (most_lines - 1)
figure_height = grow(figure_height + 0.12 * (most_lines - 1))
eval terminal(figure_height)
# Before any range is set: stats leaves out what is outside of one.
array batch_curve[v_curves > 0 ? v_curves : 1]
array low[runs]
array high[runs]
do for [r=1:runs] {
    low[r] = 1e300
    high[r] = -1e300
}
WIDEN = 'if (span_count > 0) { low[r] = span_low < low[r] ? span_low : low[r]; high[r] = span_high > high[r] ? span_high : high[r] }'
eval span('t', 't_x')
first = span_low
last = span_high
do for [k=1:t_curves] {
    r = t_run[k]
    eval span(sprintf('t index %d', k - 1), 't_loss_low')
    eval WIDEN
    eval span(sprintf('t index %d', k - 1), 't_loss_high')
    eval WIDEN
}
do for [k=1:v_curves] {
    r = v_run[k]
    eval span(sprintf('v index %d', k - 1), 'v_valid_loss')
    eval WIDEN
    eval span(sprintf('v index %d', k - 1), 'v_valid_loss_batch')
    eval WIDEN
    batch_curve[k] = span_count
    eval span(sprintf('v index %d', k - 1), 'v_x')
    first = span_count > 0 && span_low < first ? span_low : first
    last = span_count > 0 && span_high > last ? span_high : last
}
do for [r=1:runs] { if (low[r] > high[r]) { low[r] = 0; high[r] = 1 } }

set xlabel t_over offset 0,0.7
eval epoch_x(first, last, int(panel_width(runs) / 0.4))
set title noenhanced font ',7' offset 0,-0.7
set multiplot
do for [r=1:runs] {
    eval panel(r, runs, 1, 1)
    set title folded(run_label[r], 3)
    set ylabel (r == 1 ? 'loss (nats)' : '') offset 0.6,0
    eval linear_y(low[r], high[r])
    command = ''
    do for [k=1:t_curves] {
        if (t_run[k] == r) {
            command = command.sprintf('t index %d using t_x:t_loss_low:t_loss_high with filledcurves linetype 958 fillstyle transparent solid 0.28 noborder, t index %d using t_x:t_loss with lines linetype 958', k - 1, k - 1)
        }
    }
    do for [k=1:v_curves] {
        if (v_run[k] == r) {
            command = command.sprintf(', v index %d using v_x:v_valid_loss with linespoints linetype 951', k - 1)
            if (batch_curve[k] > 0) {
                command = command.sprintf(', v index %d using v_x:v_valid_loss_batch with linespoints linetype 952', k - 1)
            }
        }
    }
    eval 'plot '.command
}
eval LEGEND_DRAW
unset multiplot
