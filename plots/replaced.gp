#: title Regularized BN: discrepancy and performance gap against the number of layers whose LN was replaced by BN
#: question papers
#: runs 2- LN.h5 FIRST1.h5 FIRST2.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn_first1 nlp_bn_first2 nlp_bn
#: size 6.75 2.2
#: controls scale
#: metric valid_loss
#: table t stat-gap {runs} --metric {metric}
#: table? w stat-tid {runs} --stat mean,var --site last-bn
# One point per run (statrec train --norm-at 'encoder.0.*=bn,encoder.*=ln' and so on); a line per model and data set
# through the means (large points) of runs (small points) with as many sites. Discrepancy of the last batch-normalized site, of the final
# pass where there is one, else mean over the last tenth of the steps. Gap to the run with the fewest such
# sites (the unreplaced one), positive where the run is better.

array task_of[runs]
array metric_of[runs]
array unit_of[runs]
stats t using (task_of[int(column(0))+1] = int(column(t_task)), metric_of[int(column(0))+1] = strcol(t_metric), \
    unit_of[int(column(0))+1] = strcol(t_unit), 1) nooutput name 'RUN'
tasks = 0
do for [r=1:runs] {
    if (task_of[r] > tasks) {
        tasks = task_of[r]
        legend_text[tasks] = run_task[r]
        legend_type[tasks] = tasks
        legend_mark[tasks] = 2
    }
}
legend_count = tasks
eval LEGEND_ROOM
legend_height = legend_height + 0.1
gap_x = 0.66
eval span('t', 't_tid_mean')
if (span_count == 0) { eval refuse('no run has a discrepancy at a site with batch statistics') }
mean_high = span_high
eval span('t', 't_tid_var')
var_high = span_count > 0 ? span_high : 1
eval span('t', 't_gap')
gap_low = span_count > 0 && span_low < 0 ? span_low : 0
gap_high = span_count > 0 && span_high > 0 ? span_high : 0
stats t using t_batch_sites nooutput name 'SITES'
of_task(k, c) = column(t_task) == k ? cell(c) : NaN
# A line and its points for each task that has any.
LINES = "command = ''; do for [k=1:tasks] { "."eval span_of('t', c, sprintf('of_task(%d, %s)', k, c)); ". \
    "if (span_count > 0) { command = command.sprintf(', t using t_batch_sites:(of_task(%d, %s)) smooth unique with linespoints linetype %d, '. ". \
    "'t using t_batch_sites:(of_task(%d, %s)) with points linetype %d pointsize 0.25', k, c, k, k, c, k) } }"
c = 't_tid_mean'
eval LINES
mean_lines = command[3:*]
c = 't_tid_var'
eval LINES
var_lines = command[3:*]
c = 't_gap'
eval LINES
gap_lines = command[3:*]

set xlabel 'sites with batch statistics' offset 0,0.7
set xrange [-0.4:SITES_max + 0.4] noextend
eval sprintf('set xtics %d', SITES_max > 12 ? 4 : SITES_max > 6 ? 2 : 1)
set pointsize 0.5
set datafile missing NaN

eval SIDE_BY_SIDE(3)
set multiplot
eval panel(1, 3, 1, 1)
eval linear_y(0, mean_high)
set ylabel 'mean TID (%)' offset 0,0
eval 'plot '.mean_lines
eval panel(2, 3, 1, 1)
eval linear_y(0, var_high)
set ylabel 'variance TID (%)' offset 0,0
if (strlen(var_lines) > 0) { eval 'plot '.var_lines }
eval panel(3, 3, 1, 1)
set xzeroaxis linetype 958 linewidth 0.5
set label '↑ better' at graph 1, graph 1.06 right font ',7' textcolor rgb '#606060'
eval linear_y(gap_low, gap_high)
set ylabel 'gap (above 0: better), '.with_unit(metric_of[1], unit_of[1]) noenhanced offset 0,0
if (strlen(gap_lines) > 0) { eval 'plot '.gap_lines }
unset xzeroaxis
eval LEGEND_DRAW
unset multiplot
