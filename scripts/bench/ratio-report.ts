import { aimsOf } from './aims.ts'
import type { Comparison, ScenarioFigures } from './figures.ts'
import { ms, section, table, times } from './markdown.ts'

const TRANSLATED_MARK = ' ¹'
const LONG_BODY_MARK = ' ²'
/** Calls with bodies from this size on measure the cost of a body rather than that of a call. */
const LONG_BODY_BYTES = 50_000

const isLongBody = ({ bodyBytes }: ScenarioFigures): boolean => bodyBytes >= LONG_BODY_BYTES

/** A scenario's title, with the marks of the notes that go with it. */
export const titleOf = (figures: ScenarioFigures): string =>
  figures.title + (figures.translated ? TRANSLATED_MARK : '') + (isLongBody(figures) ? LONG_BODY_MARK : '')

/**
 * The gateway over the bare proxy, one row for each scenario.
 * @param skipped titles of those that were left out
 */
export function renderRatios(scenarios: ScenarioFigures[], skipped: string[]): string {
  const left = skipped.map((title) => [title, 'skipped: there is no wrk on the PATH'])
  return section(
    'Headgate over a bare proxy in the same runtime',
    table(
      [
        'scenario',
        'connections',
        'CPU per call',
        'calls, events per second',
        'p99 over bare',
        'first event',
        'first event, p99 over bare',
        'added p50',
        'added p99',
        'p50 over direct',
        'aims',
      ],
      [
        ...scenarios.map((figures) => {
          const { connections, overBare, addedOverDirect } = figures
          return [
            titleOf(figures),
            String(connections),
            times(overBare.cpuRatio),
            overBare.throughputRatio.toFixed(2),
            times(overBare.totalP99Ratio),
            firstEvent(figures, overBare),
            figures.events > 0 ? times(overBare.firstByteP99Ratio) : '',
            ms(overBare.addedP50),
            ms(overBare.addedP99),
            ms(addedOverDirect.addedP50),
            aimsOf(figures),
          ]
        }),
        ...left,
      ],
    ),
    'CPU: user and system time of the runtime, work put off included, over the bare proxy’s. p99 over bare: of whole calls with these ' +
      'connections. First event: milliseconds after the bare proxy’s with these connections; in a burst all servers are as busy as they can be, and it is what ' +
      'calls wait for each other. Added: milliseconds with one connection, to the last byte; no p99 of fewer than 100 ' +
      'calls. Paced: 2 ms from one event to the next.',
    ...notesOf(scenarios),
  )
}

const firstEvent = ({ events }: ScenarioFigures, over: Comparison): string =>
  events > 0 ? ms(over.addedBusyFirstByte) : ''

/** Portkey and the gateway, each over the bare proxy in the same rounds; nothing where it took no part. */
export function renderPortkey(scenarios: ScenarioFigures[]): string {
  const rows = scenarios.flatMap((figures) => {
    const { overBare: ours, portkeyOverBare: theirs } = figures
    if (theirs === null) return []
    const ahead = ours.cpuRatio < theirs.cpuRatio && ours.throughputRatio > theirs.throughputRatio
    return [
      [
        titleOf(figures),
        times(ours.cpuRatio),
        times(theirs.cpuRatio),
        ours.throughputRatio.toFixed(2),
        theirs.throughputRatio.toFixed(2),
        firstEvent(figures, ours),
        firstEvent(figures, theirs),
        ms(ours.addedP50),
        ms(theirs.addedP50),
        ahead ? 'yes' : 'no',
      ],
    ]
  })
  if (rows.length === 0) return ''
  return section(
    'Beside Portkey, which governs nothing',
    table(
      [
        'scenario',
        'CPU',
        'Portkey’s',
        'per second',
        'Portkey’s',
        'first event',
        'Portkey’s',
        'added p50',
        'Portkey’s',
        'ahead',
      ],
      rows,
    ),
    'Both over the bare proxy, in the same rounds and with the same connections. Ahead: less CPU and more calls a ' +
      'second. A header of each call gives Portkey the address; scenarios that it does not take are left out.',
  )
}

function notesOf(scenarios: ScenarioFigures[]): string[] {
  const large = new Set(
    scenarios.filter(isLongBody).map(({ title, connections }) => `${title}: ${connections}`),
  )
  const translated =
    `${TRANSLATED_MARK.trim()} Translated: the other servers are sent the same conversation in the upstream’s own ` +
    'protocol and pass its answer on. The ratio is that of governance and translation together; it does not compare ' +
    'with the rows of one protocol. Responses are not stored (`store: false`).'
  const longBodies =
    `${LONG_BODY_MARK.trim()} Large bodies: the bare proxy passes bytes on as they come, Headgate holds and reads the ` +
    'whole body first. These rows do not compare with those of 1 KB, nor with each other where connections differ ' +
    `(${[...large].join('; ')}).`
  return [
    ...(scenarios.some((figures) => figures.translated) ? [translated] : []),
    ...(large.size > 0 ? [longBodies] : []),
  ]
}
