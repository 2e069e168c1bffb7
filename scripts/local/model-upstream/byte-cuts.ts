/**
 * Cuts bytes into the writes of a stream: each byte apart, each frame apart, or before the bytes at the given offsets;
 * without `cuts` they stay one piece. Empty pieces are left out.
 */
export function cutBytes(bytes: Buffer, cuts: 'bytes' | 'frames' | number[] | undefined): Buffer[] {
  if (cuts === 'bytes') return [...bytes].map((byte) => Buffer.of(byte))
  if (cuts === 'frames') {
    // As latin1 no character is lost, whatever the bytes are.
    const parts = bytes.toString('latin1').match(/[\s\S]*?(?:\r\n\r\n|\n\n|\r\r)|[\s\S]+$/g) ?? []
    return parts.map((part) => Buffer.from(part, 'latin1'))
  }
  const places = [0, ...[...(cuts ?? [])].sort((left, right) => left - right), bytes.length]
  const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
  return pieces.filter((piece) => piece.length > 0)
}
