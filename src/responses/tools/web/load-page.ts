import type { ByteBudget } from '../../../lib/bytes/byte-budget.ts'
import { runSlices, type Slices } from '../../../lib/slices.ts'
import { visibleText } from '../../../lib/visible-text.ts'
import { type FetchedPage, fetchPage, PageError, tooManyPages, type WebPageRequest } from './fetch-page.ts'
import { type ReadablePage, readablePage } from './html/readable-page.ts'

/** A page that was opened. */
export interface WebPage extends ReadablePage {
  /** Address after redirects. */
  url: string
}

/** Characters of a page that is no HTML. */
const MOST_CHARACTERS = 1_000_000
const SLICE_CHARACTERS = 64 * 1024
/** Number of bytes in which the encoding of a page is searched, as in browsers. */
const PRESCAN_BYTES = 1_024
const META_CHARSET = /<meta[^>]{0,200}?charset\s*=[\s"']*([\w.:-]{1,40})/i

/** Memory for pages: the budget of an isolate, and the organization that takes part in it. */
interface PageRoom {
  budget: ByteBudget
  holder: string
}

/** Fetches a page and reads its visible text. @throws PageError, and the reason of the signal. */
export async function loadPage(address: string, request: WebPageRequest, room: PageRoom): Promise<WebPage> {
  const evicted = new AbortController()
  const share = room.budget.open(room.holder, () => evicted.abort(tooManyPages()))
  try {
    const signal = AbortSignal.any([request.signal, evicted.signal])
    return await readPage(await fetchPage(address, { ...request, signal, take: share.take }))
  } finally {
    share.close()
  }
}

async function readPage(fetched: FetchedPage): Promise<WebPage> {
  if (isBinary(fetched)) throw new PageError(`${new URL(fetched.url).hostname}: is no text`)
  const text = decoded(fetched)
  const read = isHtml(fetched.type, text) ? readablePage(text, fetched.url) : plainPage(text)
  const page = await runSlices(read)
  return { ...page, url: fetched.url, cut: page.cut || fetched.cut }
}

const isHtml = (type: string, text: string): boolean =>
  type === 'text/html' ||
  type === 'application/xhtml+xml' ||
  (type === '' && /^\s*<(!doctype html|html)\b/i.test(text))

/** A text without markup. */
function* plainPage(text: string): Slices<ReadablePage> {
  let read = ''
  const end = Math.min(text.length, MOST_CHARACTERS)
  for (let at = 0; at < end; at += SLICE_CHARACTERS) {
    read += visibleText(text.slice(at, Math.min(end, at + SLICE_CHARACTERS)))
    yield
  }
  return { title: '', text: read, links: [], cut: text.length > end }
}

/** Texts in UTF-16 contain zero bytes, and declare their encoding. */
function isBinary({ bytes, charset }: FetchedPage): boolean {
  const utf16 =
    charset?.startsWith('utf-16') ||
    (bytes[0] === 0xff && bytes[1] === 0xfe) ||
    (bytes[0] === 0xfe && bytes[1] === 0xff)
  return !utf16 && bytes.subarray(0, PRESCAN_BYTES).includes(0)
}

function decoded({ bytes, charset }: FetchedPage): string {
  const beginning = new TextDecoder('latin1').decode(bytes.subarray(0, PRESCAN_BYTES))
  const mark =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : null
  return decoderOf(mark ?? charset ?? META_CHARSET.exec(beginning)?.[1] ?? 'utf-8').decode(bytes)
}

/** A decoder for a label; UTF-8 for an encoding that the runtime does not know. */
function decoderOf(label: string): TextDecoder {
  try {
    return new TextDecoder(label)
  } catch {
    return new TextDecoder()
  }
}
