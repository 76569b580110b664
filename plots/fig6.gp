#: title PowerNorm figure 6: normalised singular values of the word embedding
#: question features
#: runs 1- LN.h5 PN.h5 [MORE.h5...]
#: samples nlp_ln nlp_pn nlp_pnv nlp_bn
#: size 3.25 2.3
#: tasks one
#: controls x y scale
#: table s stat-svd {run}
#: curves s by embedding x index y relative buckets 4000
# Of the last recorded step of each run, divided by the largest.

legend_count = s_curves
do for [k=1:s_curves] {
    legend_text[k] = run_label[s_run[k]]
    legend_type[k] = s_run[k]
}
eval LEGEND_ROOM
stats s using s_x nooutput name 'INDEX'
set xlabel 'index' offset 0,0.7
set ylabel '{/:Italic s_i} / {/:Italic s}_1' offset 0.3,0
eval ends_y(user_scale('linear'), figure_scale eq 'log' ? s_relative_positive : 0, 1)
eval x_axis(0, INDEX_max + 1, tic_step(INDEX_max, 6))

set multiplot
eval panel(1, 1, 1, 1)
plot for [k=1:s_curves] s index k-1 using s_x:s_relative with lines linetype s_run[k]
eval LEGEND_DRAW
unset multiplot
