#: title Regularized BN ablation: discrepancy and validation metric of each run, with and without the penalties
#: question papers
#: runs 1-16 BN.h5 RBN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_rbn nlp_rbn_1
#: size 6.75 2.3
#: tasks one
#: metric valid_loss
#: published rbn-iwslt14-* tid_mean,tid_var,{metric}
#: table t stat-gap {runs} --metric {metric}
#: table? w stat-tid {runs} --stat mean,var --site last-bn
# A line of points per run, in the given order; labels are the norm and those of its options that differ (--labels
# for others); below them what RBN prints for IWSLT14 (--published) or other tables (--published-table). Left: mean and variance TID of the last batch-normalized site, of the final pass where there is
# one, else mean over the last tenth of the steps. Right: the metric at the last evaluation; bar: 95 % interval of the
# mean of its replicates, runs that differ in their seed alone; the published metric, of other data, on an axis of its own. LN has no TID.

array metric_of[runs]
array unit_of[runs]
array better_of[runs]
stats t using (metric_of[int(column(0))+1] = strcol(t_metric), unit_of[int(column(0))+1] = strcol(t_unit), \
    better_of[int(column(0))+1] = strcol(t_better), 1) \
    nooutput name 'RUN'
eval span('t', 't_tid_mean')
tid_high = span_count > 0 ? span_high : 0
eval span('t', 't_tid_var')
tid_high = span_count > 0 && span_high > tid_high ? span_high : tid_high > 0 ? tid_high : 1
eval span('t', 't_value')
low = span_low
high = span_high
eval span('t', 't_value_low')
intervals = span_count > 0
if (intervals && span_low < low) { low = span_low }
eval span('t', 't_value_high')
if (intervals && span_high > high) { high = span_high }
dot_count = runs
published_low = 1e300
published_high = -1e300
do for [r=1:runs] { dot_name[r] = run_label[r] }
do for [i=1:published_rows] {
    dot_count = dot_count + 1
    dot_name[dot_count] = published_norm[i].', '.published_table[i]
    u = published_y1[i] > published_y2[i] || published_y2[i] != published_y2[i] ? published_y1[i] : published_y2[i]
    v = published_y3[i]
    if (u > tid_high) { tid_high = u }
    if (v < published_low) { published_low = v }
    if (v > published_high) { published_high = v }
}
legend_count = 2
legend_text[1] = 'mean TID'
legend_text[2] = 'variance TID'
legend_type[1] = 951
legend_type[2] = 952
if (published_rows > 0) {
    legend_count = 3
    legend_text[3] = 'published: '.published_source[1]
    legend_type[3] = published_type(1)
}
do for [i=1:legend_count] { legend_mark[i] = 1 }
eval LEGEND_ROOM
eval DOT_ROOM
panels = published_low > published_high ? 2 : 3
eval SIDE_BY_SIDE(panels)

set multiplot
eval dot_panel(1, panels)
set xlabel 'TID of the last BN site (%)' offset 0,0.7
set xrange [0:tid_high * 1.06] noextend
plot t using t_tid_mean:(column(0)+1) with points linetype 951, t using t_tid_var:(column(0)+1) with points linetype 952, \
     for [i=1:published_rows] t every ::0::0 using (published_y1[i]):(runs+i) with points linetype published_type(1), \
     for [i=1:published_rows] t every ::0::0 using (published_y2[i]):(runs+i) with points linetype published_type(2)
eval dot_panel(2, panels)
set xlabel with_better(metric_of[1], unit_of[1], better_of[1]) noenhanced offset 0,0.7
eval of_unit(unit_of[1])
eval dot_x(low, high)
bar = ''
if (intervals) {
    bar = 't using (cell(t_value_low)):(column(0)+1):(cell(t_value_high)-cell(t_value_low)):(0) '. \
        'with vectors nohead linetype 958 linewidth 1.2 dashtype solid, '
}
eval 'plot '.bar."t using t_value:(column(0)+1) with points linetype 957 pointtype 7"
if (panels == 3) {
    eval dot_panel(3, panels)
    set xlabel of_paper(metric[1:6] eq 'valid_' ? metric[7:*] : metric).', published' noenhanced offset 0,0.7
    eval dot_x(published_low, published_high)
    plot for [i=1:published_rows] t every ::0::0 using (published_y3[i]):(runs+i) with points linetype published_type(1)
}
eval LEGEND_DRAW
unset multiplot
