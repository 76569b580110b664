# scaling.gp -- efficiency against ranks, from the table of scaling.py:
#
#     bench/scaling.py --speed 1,32 > scaling.txt
#     gnuplot -e "table='scaling.txt'; output='scaling.svg'" bench/scaling.gp
#
# .svg, .pdf or .png, by the name. Solid: every rank normalizes its own rows. Dashed: --sync-norm.
set encoding utf8
set datafile separator tab
name_end = output[strlen(output)-2:*]
if (name_end eq 'svg') { set terminal svg size 650,430 font 'sans-serif,9' background '#FFFFFF' }
if (name_end eq 'pdf') { set terminal pdfcairo size 6.75in,4.4in font 'sans-serif,7' }
if (name_end eq 'png') { set terminal pngcairo size 1300,860 font 'sans-serif,9' fontscale 1.5 linewidth 2 }
set output output

links = '10 100 400'
models = 'resnet20 iwslt transformer_big'
titles = '"ResNet20, 128 images" "IWSLT preset, 4,096 tokens" "big Transformer, 4,096 tokens"'
colours = '#0072B2 #D55E00 #009E73'
set border 3 lc rgb '#404040' lw 0.5
set tics out nomirror scale 0.5,0.25 textcolor rgb '#202020'
set grid ytics lc rgb '#D8D8D8' lw 0.4 dt solid
set logscale x 2
set xrange [1:1024]
set yrange [0:1.02]
set xtics ('1' 1, '4' 4, '16' 16, '64' 64, '256' 256, '1024' 1024)
set ytics 0.25
unset key
do for [l=1:3] {
    eval sprintf("set linetype %d lc rgb '%s' lw 1.2 dt solid", 2 * l - 1, word(colours, l))
    eval sprintf("set linetype %d lc rgb '%s' lw 1.2 dt (6,4)", 2 * l, word(colours, l))
}
at(m, l, sync, cores) = strcol(1) eq word(models, m) && strcol(2) eq word(links, l) && strcol(3) eq sync && $5 == cores ? $7 : NaN
set multiplot layout 2,3 margins 0.08,0.975,0.1,0.94 spacing 0.06,0.13
do for [r=1:2] {
    cores = r == 1 ? 1 : 32
    do for [m=1:3] {
        set title (r == 1 ? word(titles, m) : '') offset 0,-0.6
        set ylabel (m == 1 ? sprintf('efficiency, %d core%s a rank', cores, cores == 1 ? '' : 's') : '') offset 1.2,0
        set xlabel (r == 2 ? 'ranks' : '') offset 0,0.5
        if (r == 1 && m == 2) {
            set key left bottom Left reverse samplen 2.5 width -2
        } else { unset key }
        plot for [l=1:3] for [s=1:2] table using 4:(at(m, l, word("no yes", s), cores)) with lines linetype 2 * l - 2 + s \
            title (word(links, l).' Gbit'.(s == 2 ? ', synchronised' : ''))
    }
}
unset multiplot
