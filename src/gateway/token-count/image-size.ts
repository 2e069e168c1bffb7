export interface ImageSize {
  width: number
  height: number
}

/** Limit of segments before the size of a photo, such as its thumbnail and colour profile; no camera writes more. */
const MOST_SEGMENTS = 200

/**
 * The size of a PNG, JPEG, GIF or WebP image in pixels, read from its first bytes.
 * @param base64 of the image, as characters. @returns null for anything else.
 */
export function imageSize(base64: Uint8Array): ImageSize | null {
  // A backslash is a JSON escape, which would shift all following offsets.
  if (base64.includes(0x5c)) return null
  const image = new Base64Reader(base64)
  const size = pngSize(image) ?? gifSize(image) ?? webpSize(image) ?? jpegSize(image)
  return size && size.width > 0 && size.height > 0 ? size : null
}

/** Bytes of encoded content by offset; 0 past its end. */
class Base64Reader {
  readonly #base64: Uint8Array

  constructor(base64: Uint8Array) {
    this.#base64 = base64
  }

  byte(at: number): number {
    const group = Math.floor(at / 3) * 4
    const first = this.#sextet(group + (at % 3))
    const second = this.#sextet(group + (at % 3) + 1)
    const shift = 2 * ((at % 3) + 1)
    return ((first << shift) | (second >> (6 - shift))) & 0xff
  }

  big(at: number, bytes: number): number {
    let value = 0
    for (let index = 0; index < bytes; index++) value = value * 256 + this.byte(at + index)
    return value
  }

  little(at: number, bytes: number): number {
    let value = 0
    for (let index = bytes - 1; index >= 0; index--) value = value * 256 + this.byte(at + index)
    return value
  }

  #sextet(at: number): number {
    const character = this.#base64[at] ?? 0x41
    if (character >= 0x61) return character - 0x61 + 26
    if (character >= 0x41) return character - 0x41
    if (character >= 0x30 && character <= 0x39) return character - 0x30 + 52
    return character === 0x2b ? 62 : character === 0x2f ? 63 : 0
  }
}

/** https://www.w3.org/TR/png-3/#11IHDR */
function pngSize(image: Base64Reader): ImageSize | null {
  if (image.big(0, 4) !== 0x89504e47) return null
  return { width: image.big(16, 4), height: image.big(20, 4) }
}

/** https://www.w3.org/Graphics/GIF/spec-gif89a.txt, section 18 */
function gifSize(image: Base64Reader): ImageSize | null {
  if (image.big(0, 4) !== 0x47494638) return null
  return { width: image.little(6, 2), height: image.little(8, 2) }
}

/** https://developers.google.com/speed/webp/docs/riff_container */
function webpSize(image: Base64Reader): ImageSize | null {
  if (image.big(0, 4) !== 0x52494646 || image.big(8, 4) !== 0x57454250) return null
  const format = image.big(12, 4)
  if (format === 0x56503858) return { width: image.little(24, 3) + 1, height: image.little(27, 3) + 1 }
  if (format === 0x56503820) {
    return { width: image.little(26, 2) & 0x3fff, height: image.little(28, 2) & 0x3fff }
  }
  if (format !== 0x5650384c) return null
  const bits = image.little(21, 4)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

/** The frame header among the segments: https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B. */
function jpegSize(image: Base64Reader): ImageSize | null {
  if (image.big(0, 2) !== 0xffd8) return null
  let at = 2
  for (let segment = 0; segment < MOST_SEGMENTS && image.byte(at) === 0xff; segment++) {
    const marker = image.byte(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return { width: image.big(at + 7, 2), height: image.big(at + 5, 2) }
    // Any number of fill bytes may stand before a marker.
    at += marker === 0xff ? 1 : 2 + image.big(at + 2, 2)
  }
  return null
}
