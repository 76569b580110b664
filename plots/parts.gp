#: title where runs of several tasks lose: training, generalization and discrepancy, which add up to the difference
#: question compare
#: runs 2- REFERENCE.h5 RUN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_rbn cv_ln cv_bn
#: size 3.25 1.3
#: controls x
#: metric valid_loss
#: table t stat-gap {runs} --split last-third --same-settings --metric {metric}
# A row for each run or group of runs that differ only in their seed, less the run with the normalization of the first one and
# otherwise its own task and settings. Points: means of the last third of the evaluations; bars: 95 % intervals, over pairs of
# seeds, of one pair over these evaluations. Right of zero a run is worse. Parts that no run recorded (--validate-train,
# --validate-batch) are left out.

array parts[4] = ['training', 'generalization', 'discrepancy', 'difference']
array mean_of[4] = ['t_training', 't_generalization', 't_discrepancy', 't_total']
array low_of[4] = ['t_training_low', 't_generalization_low', 't_discrepancy_low', 't_total_low']
array high_of[4] = ['t_training_high', 't_generalization_high', 't_discrepancy_high', 't_total_high']
array types[4] = [954, 952, 953, 951]
array unit_of[1]
stats t every ::0::0 using (unit_of[1] = strcol(t_unit), 1) nooutput name 'UNIT'

pairs_of(n) = n > 1 ? sprintf(', %d seeds', n) : ''
dot_count = 0
row_name(r, n) = unseeded(run_label[r]).pairs_of(n)
stats t using (dot_count = dot_count + 1, dot_name[dot_count] = row_name(int(column(t_given)), int(cell(t_pairs))), 1) nooutput name 'ROWS'

# What is drawn of each part, and the common range.
array points[4]
low = 0.0
high = 0.0
WIDEN = 'low = span_low < low ? span_low : low; high = span_high > high ? span_high : high'
legend_count = 0
array part_of[4]
do for [p=1:4] {
    eval span('t', mean_of[p])
    if (span_count > 0) {
        legend_count = legend_count + 1
        part_of[legend_count] = p
        legend_text[legend_count] = parts[p]
        legend_type[legend_count] = types[p]
        legend_mark[legend_count] = 1
        eval WIDEN
        eval span('t', low_of[p])
        if (span_count > 0) { eval WIDEN }
        eval span('t', high_of[p])
        if (span_count > 0) { eval WIDEN }
    }
}
if (legend_count == 0) { eval refuse('the runs have no finite '.metric.' after the same step') }
eval NOTE('Right of 0 a run is worse than the reference, as in stat-gap --split; the column gap of stat-gap has the other sign.')
eval span_of('t', 't_pairs', 'cell(t_pairs) < 2 ? cell(t_total_low) + cell(t_total_high) : NaN')
eval NOTE(span_count > 0 ? 'The bar of one pair of runs covers its evaluations, not other seeds.' : '')
eval LEGEND_ROOM
# A row of three or four marks has room for a name of three lines.
dot_lines = 3
dot_most = int((figure_width < 4 ? 0.38 : 0.3) * figure_width / dot_letter)
eval DOT_ROOM
set pointsize 0.75
if (!figure_fixed) {
    figure_height = grow(head_height + note_height + legend_height + pad_bottom + 0.36 * (dot_count + 0.5))
    eval terminal(figure_height)
}
# Marks of a row come one below the other, the sum last.
at(i) = column(0) + 1 + 0.2 * (i - 0.5 * (legend_count + 1))
bars = ''
marks = ''
do for [i=1:legend_count] {
    p = part_of[i]
    bars = bars.sprintf(', t using (cell(%s)):(at(%d)):(cell(%s) - cell(%s)):(0) with vectors nohead linetype %d linewidth 0.9 dashtype solid', \
        low_of[p], i, high_of[p], low_of[p], types[p])
    marks = marks.sprintf(', t using (cell(%s)):(at(%d)) with points linetype %d', mean_of[p], i, types[p])
}

set multiplot
eval dot_panel(1, 1)
eval (x_given ? x_axis(low, high, 0) : dot_x(low, high))
set xlabel 'worse by'.short_unit(unit_of[1]) noenhanced offset 0,0.7
set arrow from first 0, graph 0 to first 0, graph 1 nohead linetype 958 linewidth 0.8 dashtype solid back
eval 'plot '.bars[3:*].marks
unset arrow
eval LEGEND_DRAW
unset multiplot
