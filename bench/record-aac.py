"""Records the files of test/engine/audio/aac: FFmpeg encodes sounds, puts them in containers, and decodes them again.

    pip install av numpy && python bench/record-aac.py

Each sound has sweeps, noise and clicks, so that its packets have long and short windows, noise in place of coefficients,
filters of noise shaping, and joined channels. NAME.bin has FFmpeg's samples, by channel, every STEP-th of them.
"""

import pathlib

import av
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "test/engine/audio/aac"
STEP = 11
LAYOUTS = {1: "mono", 2: "stereo"}


def sound(rate: int, channels: int, seconds: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    t = np.arange(int(rate * seconds)) / rate
    rows = []
    for c in range(channels):
        sweep = 0.3 * np.sin(2 * np.pi * np.cumsum(200 * (c + 1) * 2 ** (t * 6)) / rate)
        noise = 0.05 * rng.standard_normal(t.size) * (np.sin(2 * np.pi * 9 * t) > 0)
        row = sweep + noise
        for at in range(rate // 20, t.size, rate // 6):
            row[at : at + 30] += 0.6 * rng.standard_normal(row[at : at + 30].size)
        rows.append(np.clip(row if c == 0 else 0.7 * rows[0] + 0.3 * row, -0.99, 0.99))
    return np.array(rows, dtype=np.float32)


def encode(name: str, rate: int, channels: int, seconds: float, bit_rate: int) -> None:
    with av.open(str(OUT / name), "w") as out:
        stream = out.add_stream("aac", rate=rate, layout=LAYOUTS[channels])
        stream.bit_rate = bit_rate
        samples = sound(rate, channels, seconds)
        for at in range(0, samples.shape[1], 1024):
            part = np.ascontiguousarray(samples[:, at : at + 1024])
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=LAYOUTS[channels])
            frame.sample_rate, frame.pts = rate, at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def crafted() -> bytes:
    """Frames of elements that FFmpeg's encoder never writes: pulses, a program, data."""
    frames = []
    for n in range(4):
        bits = ""

        def put(*fields: tuple[int, int]) -> None:
            nonlocal bits
            bits += "".join(format(value, f"0{count}b") for value, count in fields)

        if n == 1:  # a program of one channel in front, mixed down nowhere, with a comment
            put((5, 3), (0, 4), (1, 2), (8, 4), (1, 4), (0, 4), (0, 4), (0, 2), (0, 3), (0, 4), (0, 3), (0, 5))
            bits += "0" * (-len(bits) % 8)
            put((3, 8), (65, 8), (66, 8), (67, 8))
        if n == 2:  # data, at the beginning of a byte
            put((4, 3), (0, 4), (1, 1), (5, 8))
            bits += "0" * (-len(bits) % 8)
            put(*[(0xA5, 8)] * 5)
        put((0, 3), (0, 4), (150, 8), (0, 1), (0, 2), (0, 1), (20, 6), (0, 1))  # a channel with 20 bands
        put((1, 4), (20, 5))  # of zeros, in codebook 1
        put(*[(0, 1)] * 20)  # and of one factor
        put((1, 1), (3, 2), (2 + n, 6), (3, 5), (9, 4), (0, 5), (1, 4), (31, 5), (15, 4), (7, 5), (4, 4))
        put((0, 1), (0, 1))  # neither filters nor gain control
        put(*[(0, 1)] * (196 // 4))
        put((7, 3))
        bits += "0" * (-len(bits) % 8)
        body = int(bits, 2).to_bytes(len(bits) // 8, "big")
        head = "111111111111" + "0" + "00" + "1" + "01" + "1000" + "0" + "001" + "0000"
        head += format(len(body) + 7, "013b") + "1" * 11 + "00"
        frames.append(int(head, 2).to_bytes(7, "big") + body)
    return b"".join(frames)


def decode(name: str) -> None:
    """Writes FFmpeg's samples of a stream."""
    with av.open(str(OUT / f"{name}.aac")) as file:
        samples = np.concatenate([frame.to_ndarray() for frame in file.decode(audio=0)], axis=1)
    samples[:, ::STEP].astype("<f4").tofile(OUT / f"{name}.bin")


def contain(name: str, source: pathlib.Path, kind: str, options: dict[str, str], video: bool = False) -> None:
    """The same packets in a container of another kind."""
    with av.open(str(source)) as read, av.open(str(OUT / name), "w", format=kind, options=options) as out:
        if video:
            pictures = out.add_stream("mpeg4", rate=5)
            pictures.width, pictures.height, pictures.pix_fmt = 16, 16, "yuv420p"
        stream = out.add_stream_from_template(read.streams.audio[0])
        shown = 0
        for packet in read.demux(audio=0):
            if packet.dts is None:
                continue
            if video and packet.pts * packet.time_base >= shown / 5:
                picture = av.VideoFrame.from_ndarray(np.full((16, 16, 3), 40 * shown % 250, np.uint8), format="rgb24")
                picture.pts, shown = shown, shown + 1
                out.mux(pictures.encode(picture))
            packet.stream = stream
            out.mux(packet)
        if video:
            out.mux(pictures.encode(None))


def refused(name: str, codec: str, kind: str) -> None:
    with av.open(str(OUT / name), "w", format=kind) as out:
        stream = out.add_stream(codec, rate=8000, layout="mono")
        stream.format = "s16p" if codec == "alac" else "s16"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format=stream.format.name, layout="mono")
        frame.sample_rate, frame.pts = 8000, 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for rate in (8000, 24000, 32000, 44100, 48000, 64000, 96000):
        channels = 2 if rate == 44100 else 1
        seconds = 0.6 if channels == 2 else 0.25
        encode(f"{rate}.aac", rate, channels, seconds, 24000 if rate < 44100 else 48000)
        decode(f"{rate}")
    encode("voice.m4a", 16000, 1, 0.6, 24000)
    voice = OUT / "voice.m4a"
    contain("16000.aac", voice, "adts", {})
    decode("16000")
    (OUT / "crafted.aac").write_bytes(crafted())
    decode("crafted")
    contain("voice.mov", voice, "mov", {})
    contain("video.mp4", voice, "mp4", {"movflags": "faststart"}, video=True)
    contain("fragments.mp4", voice, "mp4", {"movflags": "empty_moov+default_base_moof", "frag_duration": "200000"})
    contain("fragments-video.mp4", voice, "mp4", {"movflags": "empty_moov", "frag_duration": "200000"}, video=True)
    files = OUT.parent / "files"
    contain("mp3.mp4", files / "tone.mp3", "mp4", {})
    contain("opus.mp4", files / "tone.opus", "mp4", {})
    refused("lossless.m4a", "alac", "ipod")
    refused("pcm.mov", "pcm_s16le", "mov")


main()
