#: title training and validation loss, validation with running and with batch statistics (Regularized BN)
#: question healthy
#: runs 1-12 BN.h5 [MORE.h5...]
#: samples long/bn long/rbn
#: size 6.75 2.5
#: controls x y scale smooth steps
#: table t stat-curve {run} --buckets {buckets} --phase {steps}
#: curves t x epoch y loss buckets 60
#: table? v stat-curve {run} --evals --gap --phase {steps} --metric valid_loss,valid_loss_batch
#: curves v x epoch y valid_loss,valid_loss_batch,valid_loss_gap,valid_loss_gap_mean,valid_loss_gap_low,valid_loss_gap_high
# A column per run, of many in further rows; of less than half of the longest run the epochs have an axis of its own. Upper panel of a run: training loss (median and range of each 1/60 of training) and validation loss in both modes of
# BN. Lower panel: the difference of the two validation losses, which is what the running statistics cost, with its
# mean over the second half of training and Student's 95 % interval; a run without batch statistics in validation has none.

# A method that takes no statistic from the batch has no running ones to validate with.
averages(r) = strlen(run_uses[r]) > 0
validation(r) = averages(r) ? 951 : 954
with_averages = 0
do for [r=1:runs] { with_averages = with_averages + averages(r) }
legend_count = 1
legend_text[1] = 'training'
legend_type[1] = 958
ENTRY = 'legend_count = legend_count + 1; legend_mark[legend_count] = 2; legend_text[legend_count] = entry; legend_type[legend_count] = entry_type'
entry = 'validation, running statistics'
entry_type = 951
if (with_averages > 0) { eval ENTRY }
entry = with_averages > 0 ? 'validation, of methods without running statistics' : 'validation'
entry_type = 954
if (with_averages < runs) { eval ENTRY }
entry = 'validation, batch statistics'
entry_type = 952
if (v_valid_loss_batch_finite > 0) { eval ENTRY }
gaps = v_valid_loss_gap_finite > 0
entry = 'difference; its mean and 95 % interval'
entry_type = 953
if (gaps) { eval ENTRY }
if (!gaps) {
    eval NOTE(with_averages > 0 ? 'No evaluation has finite values of both metrics valid_loss and valid_loss_batch: what running statistics cost is not measured.' : \
        'These methods have no running statistics: there is no cost of them.')
}
eval LEGEND_ROOM
panel_rows = gaps ? 2 : 1
legend_height = legend_height + 0.14
gap_x = runs > 2 ? 0.5 : 0.72
# Up to four runs side by side, more of them and those of a narrow page in further rows.
columns = runs <= 4 ? runs : 3
do for [n=columns:2:-1] { if (columns == n && !figure_fixed && panel_width(n) < 0.8) { columns = n - 1 } }
run_rows = int((runs + columns - 1) / columns)
column_of(r) = 1 + (r - 1) % columns
row_of(r) = 1 + int((r - 1) / columns)
last_in_column(r) = r + columns > runs
# Titles as wide as their panels, in up to three lines that end behind a space or a comma where there is one.
title_most = int((panel_width(columns) + 2 * pad_right) / 0.062)
title_lines(text, lines) = strlen(text) <= title_most || lines == 1 ? 1 : \
    1 + title_lines(text[fold_end(text, title_most)+1:*], lines - 1)
in_three(text) = folded(text, 3)
eval keep_apart('run_folded', 'run_label', sprintf('%d', runs), 'in_three', 'in_three')
most_lines = 1
do for [r=1:runs] {
    if (title_lines(run_label[r], 3) > most_lines) { most_lines = title_lines(run_label[r], 3) }
}
legend_height = legend_height + 0.12 * (most_lines - 1)
figure_height = grow(figure_height + 0.12 * (most_lines - 1) + 1.35 * gaps)
gap_y = 0.5 + 0.12 * most_lines
figure_height = grow(figure_height + (run_rows - 1) * (panel_height(1) + gap_y))
# The panels of a run: losses above, their difference below.
between = 0.26
part_height = panel_rows == 1 ? panel_height(run_rows) : (panel_height(run_rows) - between) / 2
part_bottom(r, part) = panel_bottom(row_of(r), run_rows) + (panel_rows - part) * (part_height + between)
part_panel(r, part) = panel(column_of(r), columns, row_of(r), run_rows).sprintf('; set bmargin at screen %.5f; set tmargin at screen %.5f', \
    part_bottom(r, part) / figure_height, (part_bottom(r, part) + part_height) / figure_height)
eval terminal(figure_height)
digits = panel_width(columns) < 1.5 ? '%.2g' : '%.3g'
# Before any range is set: stats leaves out what is outside of one.
array batch_curve[v_curves > 0 ? v_curves : 1]
array low[runs]
array high[runs]
array gap_low[runs]
array gap_high[runs]
array gap_text[runs]
array last_of[runs]
do for [r=1:runs] {
    last_of[r] = -1e300
    low[r] = 1e300
    high[r] = -1e300
    gap_low[r] = 0
    gap_high[r] = 0
    gap_text[r] = averages(r) ? 'no finite valid_loss_batch' : 'no running statistics'
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
    eval span(sprintf('t index %d', k - 1), 't_x')
    last_of[r] = span_count > 0 && span_high > last_of[r] ? span_high : last_of[r]
}
do for [k=1:v_curves] {
    r = v_run[k]
    eval span(sprintf('v index %d', k - 1), 'v_valid_loss')
    eval WIDEN
    eval span(sprintf('v index %d', k - 1), 'v_valid_loss_batch')
    eval WIDEN
    batch_curve[k] = span_count
    do for [c=v_y3:v_y6:3] {
        eval span(sprintf('v index %d', k - 1), 'c')
        gap_low[r] = span_count > 0 && span_low < gap_low[r] ? span_low : gap_low[r]
        gap_high[r] = span_count > 0 && span_high > gap_high[r] ? span_high : gap_high[r]
    }
    eval span(sprintf('v index %d', k - 1), 'v_y4')
    if (span_count > 0) { gap_text[r] = (panel_width(columns) < 1.3 ? '' : 'mean ').sprintf(digits, span_low) }
    if (span_count == 0 && batch_curve[k] > 0) { gap_text[r] = '' }
    eval span(sprintf('v index %d', k - 1), 'v_y5')
    if (span_count > 0) {
        gap_end = span_low
        eval span(sprintf('v index %d', k - 1), 'v_y6')
        gap_text[r] = gap_text[r].sprintf(' ['.digits.', '.digits.']', gap_end, span_low)
    }
    eval span(sprintf('v index %d', k - 1), 'v_x')
    first = span_count > 0 && span_low < first ? span_low : first
    last = span_count > 0 && span_high > last ? span_high : last
    last_of[r] = span_count > 0 && span_high > last_of[r] ? span_high : last_of[r]
}
# A run of less than half of the longest has an axis of its own.
end_of(r) = last_of[r] > first && last_of[r] < first + 0.5 * (last - first) ? last_of[r] : last
run_x(r) = epoch_x(first, end_of(r), int(panel_width(columns) / 0.4))
do for [r=1:runs] { if (low[r] > high[r]) { low[r] = 0; high[r] = 1 } }
largest = 0
gap_largest = 0
do for [r=1:runs] {
    largest = abs(abs_high(low[r], high[r])) > largest ? abs(abs_high(low[r], high[r])) : largest
    gap_largest = abs(abs_high(gap_low[r], gap_high[r])) > gap_largest ? abs(abs_high(gap_low[r], gap_high[r])) : gap_largest
}
eval WIDE_TICS(largest, gap_largest)

set xlabel t_over offset 0,0.7
set title noenhanced font ',7' offset 0,-0.7
set multiplot
do for [r=1:runs] {
    eval part_panel(r, 1)
    eval run_x(r)
    set title run_folded[r]
    set xlabel (gaps || !last_in_column(r) ? '' : t_over) offset 0,0.7
    set format x (gaps ? '' : '% h')
    set ylabel (column_of(r) == 1 ? 'loss'.enhanced_safe(valid_unit) : '') offset 0.6,0
    eval linear_y(low[r], high[r])
    command = ''
    do for [k=1:t_curves] {
        if (t_run[k] == r) {
            command = command.sprintf('t index %d using t_x:t_loss_low:t_loss_high with filledcurves linetype 958 fillstyle transparent solid 0.28 noborder, t index %d using t_x:t_loss with lines linetype 958', k - 1, k - 1)
        }
    }
    do for [k=1:v_curves] {
        if (v_run[k] == r) {
            command = command.sprintf(', v index %d using v_x:v_valid_loss with linespoints linetype %d', k - 1, validation(r))
            if (batch_curve[k] > 0) {
                command = command.sprintf(', v index %d using v_x:v_valid_loss_batch with linespoints linetype 952', k - 1)
            }
        }
    }
    eval 'plot '.command
}
set format x '% h'
unset title
do for [r=1:gaps*runs] {
    eval part_panel(r, 2)
    eval run_x(r)
    set xlabel (last_in_column(r) ? t_over : '') offset 0,0.7
    set ylabel (column_of(r) == 1 ? 'difference'.enhanced_safe(valid_unit) : '') offset 0.6,0
    eval gap_low[r] < gap_high[r] ? linear_y(gap_low[r], gap_high[r]) : linear_y(-0.01, 0.01)
    set label 98 gap_text[r] at graph 1, graph 1.05 right font ',7' textcolor rgb '#404040' noenhanced
    bands = ''
    lines = ''
    do for [k=1:v_curves] {
        if (v_run[k] == r && batch_curve[k] > 0) {
            bands = bands.sprintf(', v index %d using v_x:v_y5:v_y6 with filledcurves linetype 953 fillstyle transparent solid 0.2 noborder', k - 1)
            lines = lines.sprintf(', v index %d using v_x:v_y4 with lines linetype 953 linewidth 0.7, v index %d using v_x:v_y3 with linespoints linetype 953 dashtype solid', k - 1, k - 1)
        }
    }
    eval 'plot 0 with lines linetype 958 linewidth 0.5 dashtype solid'.bands.lines
    unset label 98
}
eval LEGEND_DRAW
unset multiplot
