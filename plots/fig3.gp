#: title PowerNorm figure 3: gradient norms contributed by the batch statistics of the first BN site
#: question gradient
#: runs 1- VISION.h5 TEXT.h5 [MORE.h5...]
#: samples cv_bn nlp_bn
#: size 6.75 2.3
#: controls x y scale smooth steps
#: site first
#: choice loss sum|mean|share of the loss summed over the pass as printed, of the mean loss, or as a fraction of the whole input gradient: compare only the last between widths, scales and losses
#: choice axes linear|log as printed, or logarithmic
#: word mu loss g_mu_sum|g_mu_mean|g_mu_share
#: word sigma2 loss g_sigma2_sum|g_sigma2_mean|g_sigma2_share
#: table d stat-gradnorm {run} --site {site} --loss {loss} --per-step --buckets {buckets} --phase {steps} --stat g_mu,g_sigma2
#: curves d by site x percent y {mu},{sigma2} buckets 100
# Line: median of each 1/100 of training; band: smallest to largest value, so no outlier is lost.
# g_sigma2 is the root mean square over rows. `statplot fair` draws what may be compared.

legend_count = d_curves
do for [k=1:d_curves] {
    legend_text[k] = run_label[d_run[k]].' ('.d_key[k].')'
    legend_type[k] = d_run[k]
}
band = runs > 3 ? 0.15 : 0.28
eval LEGEND_ROOM
pad_left = 0.9
gap_x = 1.0
name(q) = loss eq 'share' ? '√{/:Italic n} ‖'.q.'‖_2 / ‖{/:Italic dx}‖_F' : '‖'.q.'‖_2 / {/:Italic d}'.(loss eq 'mean' ? ', mean loss' : '')

set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)

eval SIDE_BY_SIDE(2)
set multiplot
eval panel(1, 2, 1, 1)
eval axis_y(axes, d_y1_positive, d_y1_largest)
set ylabel name('{/:Italic g_μ}') offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_y1_low:d_y1_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_y1 with lines linetype d_run[k]
eval panel(2, 2, 1, 1)
eval axis_y(axes, d_y2_positive, d_y2_largest)
set ylabel name('{/:Italic g}_{{/:Italic σ}^2}') offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_y2_low:d_y2_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_y2 with lines linetype d_run[k]
eval LEGEND_DRAW
unset multiplot
