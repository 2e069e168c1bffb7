import { section, table, times, us } from '../markdown.ts'
import type { CarrierRow } from './section.ts'

/** The section about ways to carry a stream as Markdown. */
export function renderCarriers(rows: readonly CarrierRow[]): string {
  const [first] = rows
  const titles = Object.keys(first?.cpu ?? {})
  const cells = rows.map(({ name, cpu }) => [
    name,
    ...titles.flatMap((title) => {
      const [micros, least] = [cpu[title] ?? 0, first?.cpu[title] ?? 0]
      return [us(micros), times(micros / least)]
    }),
  ])
  return section(
    'Carrying a stream, without governance',
    table(['carried by', ...titles.flatMap((title) => [title, 'ratio'])], cells),
    'CPU of one stream in a Worker that does nothing else; the least of the rounds.',
  )
}
