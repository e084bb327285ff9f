"""Packed texts of the table `Rendezvous`: an offer of 1.1 KB takes 0.25 KB, and a write unit is 1 KB."""

import zlib

# Phrases of session descriptions, as in offers and, with another escape, in answers. zlib refers to the nearest ones by
# the fewest bits. Items are packed with them, so a change makes those of the last minutes unreadable.
PHRASES = (
    r"""\r\na=msid-semantic: WMS\r\na=ice-options:trickle\r\na=setup:active\r\na=setup:passive\r\n"""
    r""" ufrag network-cost 999 network-id 1 tcptype active generation 0 typ relay raddr 0.0.0.0 rport 0\r\n"""
    r"""{"type":"offer","sdp":"v=0\r\no=- 2 IN IP4 127.0.0.1\r\n{"type":"answer","sdp":"v=0\r\no=- """
    r""" IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=msid-semantic:WMS *\r\na=fingerprint:sha-256 \r\n"""
    r"""a=extmap-allow-mixed\r\na=group:BUNDLE 0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"""
    r"""c=IN IP4 0.0.0.0\r\na=setup:actpass\r\na=mid:0\r\na=sendrecv\r\na=sctp-port:5000\r\n"""
    r"""a=max-message-size:1073741823\r\na=max-message-size:262144\r\na=ice-ufrag:\r\na=ice-pwd:\r\n"""
    r"""a=candidate: 1 udp 2130706431  192.168. 10.0. typ host ufrag \r\na=candidate: 2 udp 2130706431 """
    r""" typ host\r\na=candidate: 1 udp 1694498815  typ srflx raddr 0.0.0.0 rport \r\na=end-of-candidates\r\n"}"""
)
REPLIES = '{"error":"no snowflake proxies currently available"}{"error":"timed out waiting for answer!"}{"answer":"'
DICTIONARY = (REPLIES + PHRASES.replace("\\", r"\\").replace('"', r"\"") + PHRASES).encode()


def packed(text: str) -> bytes:
    """Return a text compressed with the phrases of session descriptions; lone surrogates are kept."""
    compressor = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=-zlib.MAX_WBITS, zdict=DICTIONARY)
    return compressor.compress(text.encode(errors="surrogatepass")) + compressor.flush()


def unpacked(content: bytes) -> str:
    """Return the text of packed content."""
    decompressor = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=DICTIONARY)
    return decompressor.decompress(content).decode(errors="surrogatepass")
