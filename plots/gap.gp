#: title where runs lose against the first: training, generalization and discrepancy, which add up to the difference
#: question compare
#: runs 2- REFERENCE.h5 RUN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn
#: size 6.75 2.2
#: tasks one
#: lines runs
#: controls x y
#: metric valid_loss
#: table t stat-gap {runs} --split evaluations --metric {metric}
# A panel for each part that the runs recorded (--validate-train, --validate-batch) and for the sum of the parts.
# Lines: means over runs that differ only in their seed, each less the reference of its seed; bands: 95 % intervals
# over these pairs. Above zero a run is worse than the first.

array parts[4] = ['training', 'generalization', 'discrepancy', 'difference']
array mean_of[4] = ['t_training', 't_generalization', 't_discrepancy', 't_total']
array low_of[4] = ['t_training_low', 't_generalization_low', 't_discrepancy_low', 't_total_low']
array high_of[4] = ['t_training_high', 't_generalization_high', 't_discrepancy_high', 't_total_high']

array unit_of[1]
stats t every ::0::0 using (unit_of[1] = strcol(t_unit), 1) nooutput name 'UNIT'
of_run(r, c) = column(t_given) == r ? cell(c) : NaN
# A group of pairs is called by what its seeds share.
pair(r) = run_label[r].' - '.run_label[1]
group(r, n) = unseeded(run_label[r]).' - '.unseeded(run_label[1]).sprintf(', %d seeds', n)
eval span('t', 't_epoch')
x_at = span_count > 0 ? t_epoch : t_step
eval span('t', 'x_at')
first = span_low
last = span_high

# Panels with values, what they draw, and their common range: before a range is set, which `stats` would obey.
array drawn[4]
array curves[4]
panels = 0
low = 0.0
high = 0.0
WIDEN = 'low = span_low < low ? span_low : low; high = span_high > high ? span_high : high'
BAND = ', t using x_at:(of_run(%d, %s)):(of_run(%d, %s)) with filledcurves linetype %d fillstyle transparent solid 0.2 noborder'
LINE = ', t using x_at:(of_run(%d, %s)) with linespoints linetype %d'
do for [p=1:4] {
    bands = ''
    lines = ''
    do for [r=2:runs] {
        eval span_of('t', low_of[p], sprintf('of_run(%d, %s)', r, low_of[p]))
        if (span_count > 0) {
            bands = bands.sprintf(BAND, r, low_of[p], r, high_of[p], r)
            eval WIDEN
            eval span_of('t', high_of[p], sprintf('of_run(%d, %s)', r, high_of[p]))
            eval WIDEN
        }
        eval span_of('t', mean_of[p], sprintf('of_run(%d, %s)', r, mean_of[p]))
        if (span_count > 0) {
            lines = lines.sprintf(LINE, r, mean_of[p], r)
            eval WIDEN
        }
    }
    if (strlen(lines) > 0) {
        panels = panels + 1
        drawn[panels] = p
        curves[panels] = bands.lines
    }
}
if (panels == 0) { eval refuse('the runs have no finite '.metric.' after the same step') }

gap_x = 0.28
if (wide_tics(abs_high(low, high))) { pad_left = pad_left + 0.18 }
gap_y = 0.56
columns = panels > 2 && panel_width(panels) < 0.9 ? 2 : panels
rows = (panels + columns - 1) / columns
legend_count = 0
do for [r=2:runs] {
    eval span_of('t', 't_total', sprintf('of_run(%d, t_total)', r))
    if (span_count > 0) {
        legend_count = legend_count + 1
        eval span_of('t', 't_pairs', sprintf('of_run(%d, t_pairs)', r))
        legend_text[legend_count] = (span_high > 1 ? group(r, span_high) : pair(r)).(rows > 1 ? ' ('.unit_of[1].')' : '')
        legend_type[legend_count] = r
    }
}
eval NOTE('Above 0 a run is worse than the reference, as in stat-gap --split; the column gap of stat-gap has the other sign.')
eval LEGEND_ROOM
legend_height = legend_height + 0.14
figure_height = grow(rows > 1 ? 1.65 * figure_height : figure_height)
eval terminal(figure_height)
set title font ',8' offset 0,-0.7
eval epoch_x(first, last, int(panel_width(columns) / 0.4))
set pointsize 0.3

set multiplot
do for [i=1:panels] {
    p = drawn[i]
    eval panel((i - 1) % columns + 1, columns, (i - 1) / columns + 1, rows)
    set title parts[p]
    set xlabel ((i - 1) / columns + 1 == rows ? (x_at == t_epoch ? 'epoch' : 'step') : '') offset 0,0.7
    set ylabel ((i - 1) % columns == 0 ? (rows > 1 ? 'worse by' : 'worse by ('.unit_of[1].')') : '') noenhanced offset 0.6,0
    eval linear_y(low, high)
    if ((i - 1) % columns > 0) { set format y '' }
    set xzeroaxis linetype 958 linewidth 0.8
    eval 'plot '.curves[i][3:*]
}
unset xzeroaxis
eval LEGEND_DRAW
unset multiplot
