"""Parts of the rendezvous benchmark: Signalbox and upstream's broker on one emulator."""
