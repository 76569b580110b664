# roofline.gp -- speed of our kernels against what memory and arithmetic allow, from the table of roofline.py:
#
#     gnuplot -e "table='roofline.tsv'; output='roofline.svg'; peak=230; bandwidth=40" bench/roofline.gp
#
# .svg, .pdf or .png, by the name. peak: GFLOP/s, bandwidth: GB/s. Groups differ by shape as well as by colour.
set encoding utf8
set datafile separator tab
name_end = output[strlen(output)-2:*]
if (name_end eq 'svg') { set terminal svg size 420,460 font 'sans-serif,11' background '#FFFFFF' }
if (name_end eq 'pdf') { set terminal pdfcairo size 3.25in,3.55in font 'sans-serif,6.5' }
if (name_end eq 'png') { set terminal pngcairo size 840,920 font 'sans-serif,11' fontscale 1.5 linewidth 2 }
set output output

set border 3 lc rgb '#404040' lw 0.5
set tics out nomirror scale 0.5,0.25 textcolor rgb '#202020'
set grid xtics ytics lc rgb '#E0E0E0' lw 0.4 dt solid
set logscale xy
set xrange [0.05:300]
set yrange [*<1:500<*]
set xtics ('0.1' 0.1, '1' 1, '10' 10, '100' 100)
set ytics ('1' 1, '10' 10, '100' 100, '1000' 1000)
set xlabel "FLOP per byte, every operand moved once\n" offset 0,0.6
set ylabel 'GFLOP/s' offset 1.2,0
set key below left maxrows 5 Left reverse samplen 0.6 spacing 1.05 width -4 font ',10'

# in the order of the legend, which goes down
groups = '"product" "elementwise" "norm forward" "norm backward" "attention forward" "attention backward" '. \
         '"conv forward" "conv backward data" "conv backward weights"'
titles = '"matrix products" "relu, sgd, adam" "normalization" "normalization back" "attention" "attention back" '. \
         '"convolution" "convolution back, data" "convolution back, weights"'
colours = '#0072B2 #000000 #A0478C #A0478C #009E73 #009E73 #D55E00 #D55E00 #D55E00'
shapes = '6 2 13 12 5 4 9 8 10'
roof(x) = x * bandwidth < peak ? x * bandwidth : peak
of(g) = strcol(1) eq word(groups, g) ? $6 : NaN

set label 1 sprintf('%.0f GB/s', bandwidth) at 0.13, roof(0.065) left textcolor rgb '#404040'
set label 2 sprintf('%.0f GFLOP/s', peak) at 0.9 * peak / bandwidth, 1.1 * peak right textcolor rgb '#404040'
set samples 400
plot roof(x) with lines lc rgb '#404040' lw 1.3 notitle, \
     for [g=1:words(groups)] table using 5:(of(g)) with points pt int(word(shapes, g)) ps 0.75 lw 1.1 \
         lc rgb word(colours, g) title word(titles, g), \
     table using 5:(of(2)):(strstrt(strcol(2), 'backward') ? '' : word(strcol(2), 1)) with labels right offset -0.9,0 notitle
