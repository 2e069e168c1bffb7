import { ms, section, table, times, us } from '../markdown.ts'
import type { ColdStarts } from './cold-start.ts'
import type { CommandFigures } from './command-latency.ts'
import type { ToolsFigures } from './section.ts'
import type { TurnCost, TurnCosts } from './turn-cost.ts'

/** The section of tools as Markdown. */
export function renderTools({ scripts, coldStarts, commands, turns }: ToolsFigures): string {
  return [
    renderScripts(scripts),
    renderColdStarts(coldStarts),
    renderCommands(commands),
    renderTurns(turns),
  ].join('\n\n')
}

function renderScripts(scripts: ToolsFigures['scripts']): string {
  const kibibytes = (bytes: number) => `${(bytes / 1024).toFixed(0)} KiB`
  return section(
    'Tools: bytes of the scripts',
    table(
      ['script', 'raw', 'gzip'],
      Object.entries(scripts).map(([name, { size, compressedSize }]) => [
        name,
        kibibytes(size),
        kibibytes(compressedSize),
      ]),
    ),
  )
}

function renderColdStarts({ starts, ...kinds }: ColdStarts): string {
  const names: Record<keyof typeof kinds, string> = {
    bare: 'bare proxy, first answer',
    gateway: 'gateway, first answer',
    tools: 'tools, first answer',
    command: 'tools, result of a first command',
  }
  const rows = Object.entries(names).map(([kind, name]) => {
    const { milliseconds, cpu } = kinds[kind as keyof typeof kinds]
    const ratios = [times(milliseconds / kinds.bare.milliseconds), times(cpu / kinds.bare.cpu)]
    return [name, ms(milliseconds), ratios[0] ?? '', ms(cpu), ratios[1] ?? '']
  })
  return section(
    'Tools: cold start',
    table(['', 'time', 'over bare', 'CPU', 'over bare'], rows),
    `From the start of the runtime's process, ${starts} times each, in turn. The process is part of it; Cloudflare starts ` +
      'scripts in processes that run.',
  )
}

function renderCommands(commands: CommandFigures[]): string {
  const [nothing] = commands
  return section(
    'Tools: commands and operations on files',
    table(
      ['', 'p50', 'p99', 'over nothing', 'CPU', 'calls'],
      commands.map(({ name, p50, p99, cpu, calls }) => [
        name,
        ms(p50),
        ms(p99),
        ms(p50 - (nothing?.p50 ?? 0)),
        us(cpu),
        String(calls),
      ]),
    ),
    'Requests to the script of tools itself, one at a time, in one workspace. Each call with effects is stored before it runs, ' +
      'and its result after.',
  )
}

function renderTurns({ plain, shell, calls }: TurnCosts): string {
  const row = (name: string, of: (cost: TurnCost) => number, show: (value: number) => string) => [
    name,
    show(of(plain)),
    show(of(shell)),
    of(plain) > 0 ? times(of(shell) / of(plain)) : '',
  ]
  const count = (value: number) => String(Number(value.toFixed(2)))
  return section(
    'Tools: cost of a tool turn',
    table(
      ['a response', 'one turn', 'two turns with a call of the shell', 'ratio'],
      [
        row('CPU of the gateway', ({ gatewayCpu }) => gatewayCpu, us),
        row('CPU of the tools', ({ toolsCpu }) => toolsCpu, us),
        row('time to the last event, p50', ({ p50 }) => p50, ms),
        row('requests to the model', ({ upstream }) => upstream, count),
        row('requests to the tools', ({ tools }) => tools, count),
        row('commits of the ledger', ({ ledgerCommits }) => ledgerCommits, count),
        row('requests to Postgres', ({ postgres }) => postgres, count),
        row('requests to Redis', ({ redis }) => redis, count),
        row('rows in its object at the end', ({ objectRows }) => objectRows, count),
      ],
    ),
    `Stored, streamed responses, one at a time, ${calls} of each kind. One at a time, no call shares a commit of the ledger with ` +
      'another one. Requests to Postgres include what the ledger writes behind the calls.',
  )
}
