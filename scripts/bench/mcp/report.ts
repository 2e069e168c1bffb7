import { ms, section, table, times, us } from '../markdown.ts'
import type { McpFigures, McpRow } from './section.ts'

/** The section of the MCP gateway as Markdown. */
export const renderMcp = ({ tools, list, call }: McpFigures): string =>
  [
    section(`MCP: \`tools/list\` with ${tools.toLocaleString('en')} tools`, rows(list)),
    section(
      'MCP: `tools/call`',
      rows(call),
      'One request at a time, in the modern era. The upstream repeats the arguments at once. CPU is that of the gateway, with what ' +
        'the ledger writes behind the calls.',
    ),
  ].join('\n\n')

function rows(figures: readonly McpRow[]): string {
  const [direct] = figures
  return table(
    ['', 'p50', 'p99', 'added', 'over the upstream', 'CPU', 'bytes', 'requests'],
    figures.map((row) => [
      row.name,
      ms(row.p50),
      ms(row.p99),
      ...(direct === undefined || row === direct
        ? ['', '']
        : [ms(row.p50 - direct.p50), times(row.p50 / direct.p50)]),
      row.cpu === null ? '' : us(row.cpu),
      String(row.bytes),
      String(row.requests),
    ]),
  )
}
