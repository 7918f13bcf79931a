# Starts a control plane for the rest of the script, with KUBECONFIG set; it ends with the script.

folder=$(mktemp -d)
mkfifo "$folder/output"
"${SETPOINT:-setpoint}" up --ephemeral --listen 127.0.0.1:0 --data-dir "$folder" > "$folder/output" &
control_plane=$!
trap 'kill $control_plane; wait $control_plane; rm -r "$folder"' EXIT
# The output stays open: a program whose reader is gone must not be stopped by it.
exec 3< "$folder/output"
while read -r first _ rest <&3; do
    if [ "$first" = ready ]; then
        export KUBECONFIG=${rest#kubeconfig=}
        break
    fi
done
[ -n "${KUBECONFIG:-}" ] || { echo "setpoint ended before it was ready" >&2; exit 1; }

# Fails the script with a message unless both texts are the same.
expect() {
    [ "$2" = "$3" ] || { echo "$1: expected $2, found $3" >&2; exit 1; }
}
