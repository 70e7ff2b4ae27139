# Cleans up after the task runner, however that ends: it outlives its owner by a moment, and learns
# from the end of its standard input that the owner is gone.
#
#   group PID     end this process group when the owner is gone
#   process PID   end this process when the owner is gone
#   ended PID     it has ended by itself
#   server PID    then stop this PostgreSQL
#   remove PATH   and last remove this folder

trap '' INT TERM HUP
targets=
server=
folder=

while read -r word value; do
    case $word in
        group) targets="$targets -$value" ;;
        process) targets="$targets $value" ;;
        ended)
            rest=
            for target in $targets; do
                [ "${target#-}" = "$value" ] || rest="$rest $target"
            done
            targets=$rest
            ;;
        server) server=$value ;;
        remove) folder=$value ;;
    esac
done

# A process that has ended and that nobody has taken note of yet still has a number.
alive() {
    kill -s 0 -- "$1" 2>/dev/null || return 1
    ! grep -q '^State:.Z' "/proc/${1#-}/status" 2>/dev/null
}

# end SIGNAL TARGET SECONDS HARDER: what does not end in time is ended harder.
end() {
    kill -s "$1" -- "$2" 2>/dev/null || return 0
    tries=$(($3 * 10))
    while [ "$tries" -gt 0 ]; do
        sleep 0.1
        alive "$2" || return 0
        tries=$((tries - 1))
    done
    kill -s "$4" -- "$2" 2>/dev/null
}

for target in $targets; do
    # nextest gives its tests ten seconds.
    end TERM "$target" 15 KILL
done
if [ -n "$server" ]; then
    # INT is PostgreSQL's fast stop, QUIT its immediate one.
    end INT "$server" 10 QUIT
fi
if [ -n "$folder" ]; then
    rm -rf -- "$folder"
fi
