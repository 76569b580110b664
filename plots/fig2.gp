#: title PowerNorm figure 2: distance between batch and running statistics of the first BN site
#: question running
#: runs 1- VISION.h5 TEXT.h5 [MORE.h5...]
#: samples cv_bn nlp_bn
#: size 6.75 2.3
#: controls x y scale smooth steps
#: site first
#: choice form paper|per-root|relative divided by d as printed, by sqrt(d), or by the running statistic: only the last may be compared between widths and scales
#: choice axes linear|log as printed, or logarithmic
#: word mu form dist_mu|dist_mu_per_root|dist_mu_relative
#: word sigma2 form dist_sigma2|dist_sigma2_per_root|dist_sigma2_relative
#: table d stat-distance {run} --site {site} --form {form} --per-step --buckets {buckets} --phase {steps} --stat mu,sigma2
#: curves d by site x percent y {mu},{sigma2} buckets 100
# Line: median of each 1/100 of training; band: smallest to largest value, so no outlier is lost. Grey: burn-in, in
# which running values still hold what they began with. `statplot fair` draws what may be compared.

legend_count = d_curves
do for [k=1:d_curves] {
    legend_text[k] = run_label[d_run[k]].' ('.d_key[k].')'
    legend_type[k] = d_run[k]
}
band = runs > 3 ? 0.15 : 0.28
eval BURN_IN_NOTE
eval LEGEND_ROOM
by(q) = form eq 'paper' ? ' / {/:Italic d}' : form eq 'per-root' ? ' / √{/:Italic d}' : ' / ‖'.q.'‖_2'

set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)

eval SIDE_BY_SIDE(2)
set multiplot
eval panel(1, 2, 1, 1)
eval axis_y(axes, d_y1_positive, d_y1_largest)
eval STARTUP('burn-in')
set ylabel '‖{/:Italic μ_B} − {/:Italic μ}‖_2'.by('{/:Italic σ}') offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_y1_low:d_y1_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_y1 with lines linetype d_run[k]
eval panel(2, 2, 1, 1)
eval axis_y(axes, d_y2_positive, d_y2_largest)
eval STARTUP('')
set ylabel '‖{/:Italic σ}_{/:Italic B}^2 − {/:Italic σ}^2‖_2'.by('{/:Italic σ}^2') offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_y2_low:d_y2_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_y2 with lines linetype d_run[k]
eval LEGEND_DRAW
unset multiplot
