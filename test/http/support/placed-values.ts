import { gateway, query } from '../../harness/gateway.ts'
import type { Json } from './response-calls.ts'

/** Values that the policies of `codePolicy` find, each at a place of its own in requests. */
export class PlacedValues {
  readonly #mark = String(Math.floor(Math.random() * 1e6)).padStart(6, '0')
  readonly #places: string[] = []

  /** A new value. */
  at(place: string): string {
    this.#places.push(place)
    return `KX-${String(this.#places.length - 1).padStart(4, '0')}-${this.#mark}`
  }

  /** The template with a value for each `@` in its texts and names. Places are paths; a name's is marked. */
  fill(template: unknown, path = ''): unknown {
    if (typeof template === 'string') return template.replaceAll('@', () => this.at(path))
    if (Array.isArray(template)) return template.map((each, index) => this.fill(each, `${path}.${index}`))
    if (typeof template !== 'object' || template === null) return template
    return Object.fromEntries(
      Object.entries(template).map(([name, value]) => {
        const at = path === '' ? name : `${path}.${name}`
        return [name.replace('@', () => this.at(`${at} (name)`)), this.fill(value, at)]
      }),
    )
  }

  /** A filled body. */
  body(template: Json): Json {
    return this.fill(template) as Json
  }

  /** The places whose values are in a text, each once, in order. */
  in(text: string): string[] {
    const found = [...text.matchAll(new RegExp(`KX-(\\d{4})-${this.#mark}`, 'g'))]
    return [...new Set(found.map(([, index]) => this.#places[Number(index)] ?? ''))].sort()
  }

  /** The places whose values any table of the gateway has, each with its table. */
  async inDatabase(): Promise<string[]> {
    const tables = await query(
      gateway(),
      "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    )
    const found = await Promise.all(
      tables.map(async ({ name }) => {
        const text = `%${this.#mark}%`
        const rows = await query(
          gateway(),
          `select t::text as text from "${name}" as t where t::text like $1`,
          [text],
        )
        return rows.flatMap((row) => this.in(String(row.text)).map((place) => `${name}: ${place}`))
      }),
    )
    return [...new Set(found.flat())].sort()
  }
}
