#: title PowerNorm figure 6: normalized singular values of the word embedding
#: question features
#: runs 1- LN.h5 PN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_pn
#: size 3.25 2.3
#: tasks one
#: controls x y scale
#: table s stat-svd {run}
#: curves s by embedding x index y relative buckets 4000
# Of the last recorded step of each run, divided by the largest. Lower panel, where runs have as many values as the first: theirs less
# those of the first, which shows what curves that lie upon each other differ in.

legend_count = s_curves
do for [k=1:s_curves] {
    legend_text[k] = run_label[s_run[k]]
    legend_type[k] = s_run[k]
}
eval LEGEND_ROOM
stats s using s_x nooutput name 'INDEX'
# The first curve of the same embedding; 0: there is none of as many values.
array against[s_curves]
array values[s_curves]
others = 0
do for [k=1:s_curves] {
    values[k] = 0
    stats s index k-1 using (values[k] = values[k] + 1) nooutput name 'VALUES'
    against[k] = 0
    do for [m=1:k-1] {
        if (against[k] == 0 && s_key[m] eq s_key[k] && values[m] == values[k]) { against[k] = against[m] > 0 ? against[m] : m }
    }
    others = others + (against[k] > 0)
}
# Value i of curve k.
most = INDEX_max < 1 ? 1 : int(INDEX_max)
array value_at[s_curves * most]
do for [k=1:s_curves] {
    stats s index k-1 using (value_at[(k - 1) * most + int(column(s_x))] = cell(s_relative), 1) nooutput name 'VALUES'
}
less(k) = cell(s_relative) - value_at[(against[k] - 1) * most + int(column(s_x))]
low = 0.0
high = 0.0
do for [k=1:s_curves] {
    if (against[k] > 0) {
        eval span_of(sprintf('s index %d', k - 1), 's_relative', 'less(k)')
        low = span_count > 0 && span_low < low ? span_low : low
        high = span_count > 0 && span_high > high ? span_high : high
    }
}
panels = others > 0 ? 2 : 1
gap_y = 0.24
if (panels == 2) { figure_height = grow(figure_height + 1.2); eval terminal(figure_height) }
set xlabel (panels == 2 ? '' : 'index') offset 0,0.7
set format x (panels == 2 ? '' : '% h')
set ylabel '{/:Italic s_i} / {/:Italic s}_1' offset 0.3,0
eval ends_y(user_scale('linear'), figure_scale eq 'log' ? s_relative_positive : 0, 1)
eval x_axis(0, INDEX_max + 1, tic_step(INDEX_max, 6))

set multiplot
eval panel(1, 1, 1, panels)
plot for [k=1:s_curves] s index k-1 using s_x:s_relative with lines linetype s_run[k]
if (panels == 2) {
    eval panel(1, 1, 2, 2)
    set format x '% h'
    set xlabel 'index' offset 0,0.7
    set ylabel 'difference to '.cut(run_label[s_run[1]], 16) noenhanced offset 0.3,0
    eval linear_ends(low - room(low, high), high + room(low, high))
    command = ''
    do for [k=1:s_curves] {
        if (against[k] > 0) { command = command.sprintf(', s index %d using s_x:(less(%d)) with lines linetype %d', k - 1, k, s_run[k]) }
    }
    eval 'plot 0 with lines linetype 958 linewidth 0.5 dashtype solid'.command
}
eval LEGEND_DRAW
unset multiplot
