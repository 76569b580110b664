#: title PowerNorm figure 2: distance between batch and running statistics of the first BN site
#: runs 1- VISION.h5 TEXT.h5 [MORE.h5...]
#: samples cv_bn nlp_bn
#: size 6.75 2.3
#: site first
#: table d stat-distance {run} --site {site} --per-step --buckets {buckets} --stat mu,sigma2
#: curves d by site x percent y dist_mu,dist_sigma2 buckets 100
# Line: median of each 1/100 of training; band: smallest to largest value, so no outlier is lost.
# Logarithmic, because the distances of a text model are orders of magnitude above those of an image
# model: on the paper's linear axes (0 to 0.07 and 0 to 6) the latter lies on the axis.

legend_count = d_curves
do for [k=1:d_curves] {
    legend_text[k] = run_label[d_run[k]].' ('.d_key[k].')'
    legend_type[k] = d_run[k]
}
band = runs > 3 ? 0.15 : 0.28
eval LEGEND_ROOM

set xlabel 'training (%)' offset 0,0.7
set xrange [0:100]
set xtics 0,25,100

set multiplot
eval panel(1, 2, 1, 1)
eval log_y(d_dist_mu_positive, d_dist_mu_largest)
set ylabel '‖{/:Italic μ_B} − {/:Italic μ}‖_2 / {/:Italic d}' offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_dist_mu_low:d_dist_mu_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_dist_mu with lines linetype d_run[k]
eval panel(2, 2, 1, 1)
eval log_y(d_dist_sigma2_positive, d_dist_sigma2_largest)
set ylabel '‖{/:Italic σ}_{/:Italic B}^2 − {/:Italic σ}^2‖_2 / {/:Italic d}' offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:d_dist_sigma2_low:d_dist_sigma2_high \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:d_dist_sigma2 with lines linetype d_run[k]
eval LEGEND_DRAW
unset multiplot
