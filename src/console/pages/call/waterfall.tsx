import { durationText, numberText } from '../../data/format.ts'
import { Section } from '../../design/section.tsx'
import { contentOf, type ShownCall } from './call-record.ts'
import { TEXT } from './text.ts'
import styles from './waterfall.module.css'

/** A part of a call: from when, in milliseconds after the call began, and how long. */
interface Span {
  name: string
  of?: string
  from: number
  length: number
  look: 'own' | 'upstream' | 'wait' | 'failed'
  /** Beside the bar. */
  note?: string
  /** Beside the length. */
  figure?: string
  isPart?: boolean
}

/** Where the time of a call went: admission, each attempt, waiting and streaming. */
export function Waterfall({ shown }: { shown: ShownCall }) {
  const { timing } = contentOf(shown)
  const spans = spansOf(shown)
  const total = Math.max(1, shown.duration_ms)
  const own = timing === undefined ? '' : TEXT.own(durationText(timing.admitted))
  return (
    <Section title={TEXT.time} note={TEXT.inAll(durationText(shown.duration_ms)) + own}>
      {spans.length === 0 ? (
        <p className={styles.none}>{TEXT.noTiming}</p>
      ) : (
        <div className={styles.waterfall}>
          <div className={styles.ticks} aria-hidden="true">
            {ticksOf(total).map((tick) => (
              <span key={tick} style={{ left: `${(100 * tick) / total}%` }}>
                {tick === 0 ? '0 ms' : numberText(tick)}
              </span>
            ))}
          </div>
          <ol>
            {spans.map((span) => (
              <SpanLine key={`${span.name} ${span.from}`} span={span} total={total} />
            ))}
          </ol>
        </div>
      )}
    </Section>
  )
}

function SpanLine({ span, total }: { span: Span; total: number }) {
  const left = `${(100 * span.from) / total}%`
  const end = (100 * (span.from + span.length)) / total
  return (
    <li className={span.isPart ? styles.part : undefined}>
      <span>
        {span.name} {span.of && <span className={styles.dim}>{span.of}</span>}
      </span>
      <span className={styles.track}>
        <i data-look={span.look} style={{ left, width: `${(100 * span.length) / total}%` }} />
        {span.note && (
          <em style={end > 60 ? { right: `${100 - (100 * span.from) / total}%` } : { left: `${end}%` }}>
            {span.note}
          </em>
        )}
      </span>
      <span>
        {durationText(span.length)}
        {span.figure && <span className={styles.dim}> · {span.figure}</span>}
      </span>
    </li>
  )
}

/** The parts that a record knows of. Attempts follow each other: the last one ends with the call. */
function spansOf(shown: ShownCall): Span[] {
  const { timing, attempts = [] } = contentOf(shown)
  if (timing === undefined) return []
  const spans: Span[] = [{ name: TEXT.admission, from: 0, length: timing.admitted, look: 'own' }]
  let from = timing.admitted
  for (const [index, attempt] of attempts.entries()) {
    const isLast = index === attempts.length - 1
    const rest = Math.max(0, shown.duration_ms - from)
    const length = isLast && attempt.failure === null ? rest : Math.min(attempt.durationMilliseconds, rest)
    const failure = attempt.failure?.replaceAll('_', ' ')
    spans.push({
      name: TEXT.attempt(index + 1),
      of: attempt.provider,
      from,
      length,
      look: failure === undefined ? 'upstream' : 'failed',
      ...(failure !== undefined && { note: [attempt.status, failure].filter(Boolean).join(' ') }),
    })
    if (isLast && timing.firstEvent !== null) spans.push(...streamSpans(shown, from, timing.firstEvent))
    from += length
  }
  return spans
}

/** Waiting for the first event, and the stream after it. */
function streamSpans(shown: ShownCall, from: number, first: number): Span[] {
  const { timing } = contentOf(shown)
  const last = timing?.lastEvent ?? shown.duration_ms
  const streamed = Math.max(0, last - first)
  const speed = streamed > 0 ? Math.round((shown.output_tokens * 1_000) / streamed) : 0
  return [
    {
      name: TEXT.wait,
      from,
      length: Math.max(0, first - from),
      look: 'wait',
      isPart: true,
      note: TEXT.firstAt(durationText(first)),
    },
    {
      name: TEXT.stream,
      from: first,
      length: streamed,
      look: 'upstream',
      isPart: true,
      figure: [
        ...(speed > 0 ? [TEXT.perSecond(numberText(speed))] : []),
        ...(timing?.events ? [TEXT.events(numberText(timing.events))] : []),
      ].join(' · '),
    },
  ]
}

/** Round times on the axis, five to ten of them. */
function ticksOf(total: number): number[] {
  const rough = total / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough,
  )
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, index) => Math.round(index * step))
}
