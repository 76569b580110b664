#: title Regularized BN: discrepancy of the last batch-normalized site against the gap to the reference run of the task
#: question papers
#: runs 2- LN.h5 BN.h5 [MORE.h5...]
#: lines runs
#: samples nlp_ln nlp_bn nlp_bn_first1 nlp_bn_first2 nlp_rbn nlp_rbn_1 cv_ln cv_bn
#: size 3.25 2.9
#: stat tid_total
#: metric valid_loss
#: published rbn-tid* tid_total,gap
#: table t stat-gap {runs} --metric {metric}
#: table? w stat-tid {runs} --stat mean,var --site last-bn
# One point per run with batch statistics: --stat tid_mean, tid_var or tid_total in percent (of the final pass, else
# mean over the last tenth of the steps) against its gap to the run of the same model and data that has the fewest
# sites with batch statistics (LN), positive where the run is better. --metric takes several names separated by
# commas, the first that a run has: the paper's tasks have a metric each. Any number of tasks. Published gaps, in points of
# other metrics, have an axis of their own.
# Cross: 95 % intervals of the means of replicates, runs that differ in their seed alone (total TID and gap).

if (!exists('t_'.stat)) { eval refuse('--stat is tid_mean, tid_var or tid_total here') }
array tid_of[runs]
array gap_of[runs]
array metric_of[runs]
array unit_of[runs]
stats t using (metric_of[int(column(0))+1] = strcol(t_metric), unit_of[int(column(0))+1] = strcol(t_unit), \
    tid_of[int(column(0))+1] = cell(value('t_'.stat)), gap_of[int(column(0))+1] = cell(t_gap), 1) nooutput name 'RUN'
array low[2] = [0.0, 0.0]
array high[2] = [0.0, 0.0]
right = 0.0
alike = 1
array at_tid[runs + published_rows]
array at_gap[runs + published_rows]
array at_side[runs + published_rows]
ADD = 'if (u == u && v == v) { legend_count = legend_count + 1; '. \
    'at_tid[legend_count] = u; at_gap[legend_count] = v; legend_text[legend_count] = name; '. \
    'legend_type[legend_count] = type; legend_mark[legend_count] = 1; '. \
    'at_side[legend_count] = side; if (v < low[side]) { low[side] = v }; if (v > high[side]) { high[side] = v }; if (u > right) { right = u } }'
eval span('t', 't_gap_low')
intervals = span_count > 0
if (intervals && span_low < low[1]) { low[1] = span_low }
eval span('t', 't_gap_high')
if (span_count > 0 && span_high > high[1]) { high[1] = span_high }
side = 1
do for [r=1:runs] {
    if (!(metric_of[r] eq metric_of[1])) { alike = 0 }
    u = tid_of[r]
    v = gap_of[r]
    name = run_label[r]
    type = r
    eval ADD
}
measured = legend_count
side = 2
do for [i=1:published_rows] {
    u = published_y1[i]
    v = published_y2[i]
    name = published_source[i]
    type = published_type(i)
    eval ADD
}
if (legend_count == 0) { eval refuse('no run with batch statistics beside a reference run with the same metric') }
eval LEGEND_ROOM
legend_height = legend_height + 0.14
panels = measured > 0 && legend_count > measured ? 2 : 1
if (panels == 2) { figure_height = grow(figure_height + 1.7); eval terminal(figure_height) }
gap_y = 0.2
set label '↑ better' at graph 1, graph 1.045 right font ',7' textcolor rgb '#606060'
pad_left = 0.8
tid_axis = stat_name(stat).' of the last BN site (%)'
set xrange [0:right > 0 ? right * 1.1 : 1] noextend
set pointsize 0.7
set xzeroaxis linetype 958 linewidth 0.5

set multiplot
middle(low, high) = 0.5 * (cell(low) + cell(high))
x_low = stat eq 'tid_total' ? t_tid_low : 0
# A bar for the gap; one for the discrepancy where it is the one that has an interval.
crosses = ''
if (intervals) {
    crosses = ", t using (x_low ? middle(t_tid_low, t_tid_high) : cell(value('t_'.stat))):(cell(t_gap_low)):(0):(cell(t_gap_high)-cell(t_gap_low)) ". \
        "with vectors nohead linetype 958 linewidth 0.8 dashtype solid"
    if (x_low) {
        crosses = crosses.", t using (cell(t_tid_low)):(middle(t_gap_low, t_gap_high)):(cell(t_tid_high)-cell(t_tid_low)):(0) ". \
            "with vectors nohead linetype 958 linewidth 0.8 dashtype solid"
    }
}
do for [side=1:2] {
    command = ''
    do for [i=1:legend_count] {
        if (at_side[i] == side) { command = command.sprintf(', t every ::0::0 using (at_tid[%d]):(at_gap[%d]) with points linetype legend_type[%d]', i, i, i) }
    }
    if (strlen(command) > 0) {
        eval panel(1, 1, side == 1 ? 1 : panels, panels)
        eval linear_y(low[side], high[side])
        set format x (side == panels || panels == 1 ? '%g' : '')
        set xlabel (side == panels || panels == 1 ? tid_axis : '') offset 0,0.7 noenhanced
        set ylabel (side == 2 ? 'published gap, points' : alike ? 'gap (above 0: better), '.with_unit(metric_of[1], unit_of[1]) : 'gap (above 0: better), each in its metric') offset 0,0 noenhanced
        eval 'plot '.command[3:*].(side == 1 ? crosses : '')
        unset label
    }
}
unset format
unset xzeroaxis
eval LEGEND_DRAW
unset multiplot
