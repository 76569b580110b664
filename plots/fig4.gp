#: title PowerNorm figure 4: BN against PN-V, distances of statistics and gradient norms
#: question papers
#: runs 2 BN.h5 PNV.h5
#: samples nlp_bn nlp_pnv
#: size 6.75 2.3
#: controls x y scale smooth steps
#: site first
#: choice reading squares|roots left: distances of the squares, as the paper's text says, or of the roots, as its caption
#: word bn reading sigma2|sigma
#: word pn reading psi2|psi
#: table b stat-distance {run1} --site {site} --per-step --buckets {buckets} --phase {steps} --stat {bn}
#: curves b by site x percent y dist_{bn} buckets 100
#: table p stat-distance {run2} --site {site} --per-step --buckets {buckets} --phase {steps} --stat {pn}
#: curves p by site x percent y dist_{pn} buckets 100
#: table g stat-gradnorm {run1} --site {site} --per-step --buckets {buckets} --phase {steps} --stat g_mu,g_sigma2
#: curves g by site x percent y g_mu,g_sigma2 buckets 100
#: table h stat-gradnorm {run2} --site {site} --per-step --buckets {buckets} --phase {steps} --stat g_psi2
#: curves h by site x percent y g_psi2 buckets 100
# Left: distance of the batch's statistic from the running one: sigma^2 of BN and psi^2 of PN-V by the paper's
# text, their roots by its caption (--reading roots). Right: norms of the gradients that the batch statistics
# contribute. Line: median of each 1/100 of training; band:
# smallest to largest value. With several sites (--site) the curves of one kind look alike.
# "(observed)" behind a label: the run's method does not use the statistic, it is what BN or PN-V would find there.

square = reading eq 'squares' ? '²' : ''
legend_count = 3
legend_text[1] = run_label[1].': σ'.square.', gradient of σ²'
legend_type[1] = 1
legend_text[2] = run_label[1].': gradient of μ'
legend_type[2] = 3
legend_text[3] = run_label[2].': ψ'.square.', gradient of ψ²'
legend_type[3] = 2
eval BURN_IN_NOTE
eval LEGEND_ROOM
pad_left = 0.72

low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)

eval SIDE_BY_SIDE(2)
set multiplot
eval panel(1, 2, 1, 1)
eval log_y(low(b_y1_positive, p_y1_positive), high(b_y1_largest, p_y1_largest))
distance(a) = sprintf('‖{/:Italic %s_B}%s − {/:Italic %s}%s‖_2 / {/:Italic d}', a, square, a, square)
eval STARTUP('burn-in')
set ylabel distance('σ').',  '.distance('ψ') offset 0.3,0
plot for [k=1:b_curves] b index k-1 using b_x:b_y1_low:b_y1_high \
         with filledcurves linetype 1 fillstyle transparent solid 0.28 noborder, \
     for [k=1:p_curves] p index k-1 using p_x:p_y1_low:p_y1_high \
         with filledcurves linetype 2 fillstyle transparent solid 0.28 noborder, \
     for [k=1:b_curves] b index k-1 using b_x:b_y1 with lines linetype 1, \
     for [k=1:p_curves] p index k-1 using p_x:p_y1 with lines linetype 2
eval panel(2, 2, 1, 1)
eval NO_STARTUP
eval log_y(low(low(g_y1_positive, g_y2_positive), h_y1_positive), \
           high(high(g_y1_largest, g_y2_largest), h_y1_largest))
set ylabel '‖{/:Italic g}‖_2 / {/:Italic d}' offset 0.3,0
plot for [k=1:g_curves] g index k-1 using g_x:g_g_sigma2_low:g_g_sigma2_high \
         with filledcurves linetype 1 fillstyle transparent solid 0.28 noborder, \
     for [k=1:g_curves] g index k-1 using g_x:g_g_mu_low:g_g_mu_high \
         with filledcurves linetype 3 fillstyle transparent solid 0.28 noborder, \
     for [k=1:h_curves] h index k-1 using h_x:h_y1_low:h_y1_high \
         with filledcurves linetype 2 fillstyle transparent solid 0.28 noborder, \
     for [k=1:g_curves] g index k-1 using g_x:g_g_sigma2 with lines linetype 1, \
     for [k=1:g_curves] g index k-1 using g_x:g_g_mu with lines linetype 3, \
     for [k=1:h_curves] h index k-1 using h_x:h_y1 with lines linetype 2
eval LEGEND_DRAW
unset multiplot
