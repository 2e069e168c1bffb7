import { hidesText } from './hiding-styles.ts'
import type { Attributes } from './html-tokens.ts'

const names = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** Elements without content. */
export const VOID = names('area base br col embed hr img input link meta param source track wbr')
/** Elements whose content is no text of the page. */
const UNREAD = names(
  'template svg math select datalist audio video canvas object button map progress meter frameset head',
)
/** Elements that begin and end a block of text. All others are inline. */
export const BLOCK = names(
  'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol p pre search section summary table tbody td template tfoot th thead tr ul',
)
const ASIDE = names('nav aside footer')
const ASIDE_ROLES = names('navigation banner contentinfo complementary search menu menubar')
export const TABLE_PARTS = names('table caption thead tbody tfoot tr td th')
export const CELLS = names('td th')
export const LISTS = names('ul ol menu dir')

/** Flags of an element, which apply to its text and to all elements in it. */
export const HIDDEN = 1
export const MAIN = 2
export const ARTICLE = 4
/** Navigation and the like, beside the content. */
export const BESIDE = 8
export const PREFORMATTED = 16
export const CELL = 32

/** The flags of the text in an element, after those around it. */
export function flagsIn(name: string, attributes: Attributes, around: number): number {
  let flags = name === 'table' ? around & ~CELL : around
  if (UNREAD.has(name) || isHidden(name, attributes)) flags |= HIDDEN
  const role = attributes.role?.toLowerCase() ?? ''
  if (name === 'main' || role === 'main') flags |= MAIN
  if (name === 'article' || role === 'article') flags |= ARTICLE
  const isHeader = name === 'header' && !(around & (MAIN | ARTICLE))
  if (ASIDE.has(name) || ASIDE_ROLES.has(role) || isHeader) flags |= BESIDE
  if (name === 'pre') flags |= PREFORMATTED
  if (CELLS.has(name)) flags |= CELL
  return flags
}

/** Classes with which common style sheets hide text. */
const HIDING_CLASSES = names(
  'sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only d-none is-hidden invisible u-hidden element-invisible',
)

/** Whether text in this element is hidden by its own attributes. Style sheets are not read. */
function isHidden(name: string, attributes: Attributes): boolean {
  if (attributes.hidden !== undefined || attributes['aria-hidden']?.toLowerCase() === 'true') return true
  if (name === 'dialog' && attributes.open === undefined) return true
  if (hidesText(attributes.style ?? '')) return true
  return (attributes.class ?? '').split(/\s+/).some((one) => HIDING_CLASSES.has(one.toLowerCase()))
}

/**
 * Elements that the start of another one closes, and those that it does not look behind. Blocks also close a paragraph.
 */
export const CLOSED_BY: Readonly<
  Record<string, { closes: ReadonlySet<string>; within: ReadonlySet<string> }>
> = {
  li: { closes: names('li'), within: names('ul ol menu dir table td th') },
  dt: { closes: names('dt dd'), within: names('dl table td th') },
  dd: { closes: names('dt dd'), within: names('dl table td th') },
  td: { closes: names('td th'), within: names('tr table') },
  th: { closes: names('td th'), within: names('tr table') },
  tr: { closes: names('tr'), within: names('table') },
  tbody: { closes: names('thead tbody tfoot'), within: names('table') },
  tfoot: { closes: names('thead tbody tfoot'), within: names('table') },
  body: { closes: names('head'), within: names('body') },
}
