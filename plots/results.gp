#: title result table as a picture: a validation metric per normalization and task, with the papers' values beside it
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_rbn nlp_pnv nlp_pn nlp_ln_simple nlp_adanorm
#: size 3.25 2.7
#: metric valid_ppl
#: published * {metric}
#: table t stat-gap {runs} --metric {metric}
# A row per normalization (the first among a run's sites); a filled point per run at its last evaluation, a colour
# per model and data set; hollow grey: published, a shape per table of the papers (--published-table rbn-iwslt14-*).
# Bars: 95 % intervals of the means of replicates, runs that differ in their seed alone.
# Whether more or less is better depends on the metric. The axis is logarithmic where values differ by more than 4.

array task_of[runs]
array value_of[runs]
array metric_of[runs]
array unit_of[runs]
stats t using (task_of[int(column(0))+1] = int(column(t_task)), value_of[int(column(0))+1] = cell(t_value), \
    metric_of[int(column(0))+1] = strcol(t_metric), unit_of[int(column(0))+1] = strcol(t_unit), 1) nooutput name 'RUN'

low = 1e300
high = -1e300
eval span('t', 't_value_low')
intervals = span_count > 0
if (intervals) { low = span_low }
eval span('t', 't_value_high')
if (intervals) { high = span_high }
WIDEN = 'if (v == v) { if (v < low) { low = v }; if (v > high) { high = v } }'
ROW = 'row = 0; do for [i=1:dot_count] { if (dot_name[i] eq name) { row = i } }; '. \
    'if (!row) { dot_count = dot_count + 1; dot_name[dot_count] = name; row = dot_count }'
array row_of[runs]
array published_row[published_rows > 0 ? published_rows : 1]
tasks = 0
do for [r=1:runs] {
    name = run_norm[r]
    eval ROW
    row_of[r] = row
    v = value_of[r]
    eval WIDEN
    if (task_of[r] > tasks) {
        tasks = task_of[r]
        legend_text[tasks] = run_task[r]
        legend_type[tasks] = tasks
        legend_mark[tasks] = 1
    }
}
legend_count = tasks
do for [j=1:published_rows] {
    name = published_norm[j]
    eval ROW
    published_row[j] = row
    v = published_y1[j]
    eval WIDEN
}
do for [g=1:published_groups] {
    legend_count = legend_count + 1
    legend_text[legend_count] = published_name[g]
    legend_type[legend_count] = published_type(g)
    legend_mark[legend_count] = 1
}
eval LEGEND_ROOM
eval DOT_ROOM
set xlabel with_unit(metric_of[1], unit_of[1]) noenhanced offset 0,0.7

set multiplot
eval dot_panel(1, 1)
eval dot_x(low, high)
bars = ''
if (intervals) {
    bars = 't using (cell(t_value_low)):(row_of[int(column(0))+1]):(cell(t_value_high)-cell(t_value_low)):(0) '. \
        'with vectors nohead linetype 8 linewidth 1.2 dashtype solid, '
}
eval 'plot '.bars."for [r=1:runs] t every ::0::0 using (value_of[r]):(row_of[r]) with points linetype task_of[r], \
     for [j=1:published_rows] t every ::0::0 using (published_y1[j]):(published_row[j]) with points linetype published_type(published_group[j]) pointsize 0.75"
eval LEGEND_DRAW
unset multiplot
