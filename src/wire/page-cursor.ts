import * as z from 'zod'

/** The end of a page: the time of its last row, in microseconds since the epoch, and that row's id. */
export interface PagePosition {
  at: number
  id: string
  /** The recorded view of which the next page is a part; absent in lists whose views are not recorded. */
  view?: BegunView
}

/** A view of a list that was begun, in milliseconds since the epoch, under a MAC. */
interface BegunView {
  at: number
  mac: string
}

export interface PageRequest {
  limit: number
  after: PagePosition | null
}

/** Rows of one page, and the position of the next one; null after the last. */
export interface Page<Row> {
  rows: Row[]
  next: PagePosition | null
}

/** The envelope of every list of the management API. */
interface ListBody<Item> {
  data: Item[]
  has_more: boolean
  next_cursor: string | null
}

const members = [z.int().nonnegative(), z.string().max(300).refine(isPlainText)] as const
const position = z.tuple(members)
const positionInView = z.tuple([...members, z.int().nonnegative(), z.string().max(100)])

/** Opaque to callers: its content can change. */
export const encodeJsonCursor = (content: unknown): string =>
  Buffer.from(JSON.stringify(content)).toString('base64url')

function encodeCursor({ at, id, view }: PagePosition): string {
  return encodeJsonCursor(view ? [at, id, view.at, view.mac] : [at, id])
}

/** A cursor whose content is JSON of a schema, decoded. Text that is no cursor is an issue, never a database error. */
export const jsonCursor = <Content extends z.ZodType>(content: Content) =>
  z
    .string()
    .max(1_000)
    .transform((text, context): z.output<Content> => {
      const parsed = content.safeParse(parseJson(Buffer.from(text, 'base64url').toString('utf8')))
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
      return z.NEVER
    })

/** The `cursor` query parameter of a list, decoded. */
export const cursorParameter = jsonCursor(position).transform(([at, id]): PagePosition => ({ at, id }))

/** The same of a list whose views are recorded. A cursor without a view begins one. */
export const viewCursorParameter = jsonCursor(z.union([positionInView, position])).transform(
  ([at, id, begunAt, mac]): PagePosition =>
    begunAt === undefined || mac === undefined ? { at, id } : { at, id, view: { at: begunAt, mac } },
)

/** Text that Postgres can store: well-formed UTF-16 without control characters. */
export function isPlainText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(text)
}

/** The body of a list, from a page of rows. */
export function listBody<Row, Item>(page: Page<Row>, present: (row: Row) => Item): ListBody<Item> {
  return {
    data: page.rows.map(present),
    has_more: page.next !== null,
    next_cursor: page.next === null ? null : encodeCursor(page.next),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
