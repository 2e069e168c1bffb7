import type { Slices } from '../../lib/slices.ts'
import type { ImageRule } from './image-tokens.ts'

/**
 * A page is charged as its text and as an image of it, which is drawn at about 2,000 pixels
 * (https://platform.openai.com/docs/guides/pdf-files). 2,000 tokens are a page without margins in small print.
 */
const PAGE_TEXT_TOKENS = 2_000
const PAGE_SIZE = { width: 1_545, height: 2_000 }
/** Vendors' limit of pages in one request, for files whose page count cannot be read. */
const MOST_PAGES = 100
/** Characters of base64 that are decoded at a time, a multiple of four. */
const SLICE = 65_536
/** Bytes that are read again with the next slice, so that no mark between two slices is missed. */
const OVERLAP = 64

/**
 * Upper bound of the tokens of a PDF file, in slices: by its page count, else by its bytes. A file without a readable page count
 * is usually compressed as a whole.
 * @param base64 of the file, as characters.
 */
export function* documentTokens(base64: Uint8Array, image: ImageRule): Slices<number> {
  const bytes = Math.ceil((base64.length * 3) / 4)
  const pages = yield* pagesOf(base64)
  const perPage = PAGE_TEXT_TOKENS + image(PAGE_SIZE)
  return pages > 0 ? pages * perPage : Math.min(Math.max(bytes, perPage), MOST_PAGES * perPage)
}

/** Whether a file in base64 is a PDF. */
export const isPdf = (base64: Uint8Array): boolean =>
  [...PDF].every((letter, index) => base64[index] === letter.charCodeAt(0))
/** `%PDF-` */
const PDF = 'JVBERi'

/** The page count: `/N` of a linearized file, `/Count` in the root of the page tree, or the number of page objects. */
function* pagesOf(base64: Uint8Array): Slices<number> {
  let declared = 0
  let listed = 0
  let kept = ''
  for (let at = 0; at < base64.length; at += SLICE) {
    const slice = decodeSlice(base64.subarray(at, at + SLICE))
    if (slice === null) return 0
    const text = kept + slice
    for (const [mark, start, pages] of marksOf(text)) {
      // A mark in the overlap may be cut off; the next slice has all of it.
      if (start >= text.length - OVERLAP && at + SLICE < base64.length) continue
      if (mark === 'page') listed++
      else declared = Math.max(declared, pages)
    }
    kept = text.slice(-OVERLAP)
    yield
  }
  return Math.max(declared, listed)
}

function* marksOf(text: string): Generator<['page' | 'count', number, number]> {
  for (const match of text.matchAll(
    /\/Type\s{0,4}\/Page(?![A-Za-z])|\/Count\s{1,4}(\d{1,6})|\/Linearized.{1,200}?\/N\s{1,4}(\d{1,6})/gs,
  )) {
    const count = match[1] ?? match[2]
    yield [count === undefined ? 'page' : 'count', match.index, Number(count ?? 0)]
  }
}

function decodeSlice(characters: Uint8Array): string | null {
  try {
    return atob(latin1.decode(characters))
  } catch {
    return null
  }
}

const latin1 = new TextDecoder('latin1')
