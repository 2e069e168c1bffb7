import { ms, section, table, times } from '../markdown.ts'
import type { ColdStarts, StartFigures } from './cold-start.ts'

const NAMES: Record<keyof ColdStarts, string> = {
  bare: 'bare proxy, first answer',
  gateway: 'gateway, first answer',
  tools: 'tools, first answer',
  command: 'tools, result of a first command',
}

/** The section of starts as Markdown. */
export function renderStarts({ scripts, coldStarts, starts }: StartFigures): string {
  const kibibytes = (bytes: number) => `${(bytes / 1024).toFixed(0)} KiB`
  const sizes = Object.entries(scripts).map(([name, { size, compressedSize }]) => [
    name,
    kibibytes(size),
    kibibytes(compressedSize),
  ])
  const { bare } = coldStarts
  const rows = (Object.keys(NAMES) as Array<keyof ColdStarts>).map((kind) => {
    const { milliseconds, cpu } = coldStarts[kind]
    return [
      NAMES[kind],
      ms(milliseconds),
      times(milliseconds / bare.milliseconds),
      ms(cpu),
      times(cpu / bare.cpu),
    ]
  })
  return section(
    'Starts of the scripts',
    table(['script', 'raw', 'gzip'], sizes),
    table(['', 'time', 'over bare', 'CPU', 'over bare'], rows),
    `From the start of the runtime's process, ${starts} times each, in turn. The process is part of it; Cloudflare starts ` +
      'scripts in processes that run.',
  )
}
