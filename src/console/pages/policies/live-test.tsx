import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { numberText, plural } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { codeOf } from '../../data/refusals.ts'
import { useSettled } from '../../data/settled.ts'
import { Failure, Notice } from '../../design/notice.tsx'
import { Segments } from '../../design/segments.tsx'
import { Table } from '../../design/table.tsx'
import styles from './policies.module.css'
import type { Direction, PolicyContent } from './policy-draft.ts'
import { ActionText } from './rule-table.tsx'
import { TEXT } from './text.ts'

type Trial = AnswerOf<'policies.test'>

/** Milliseconds without a key after which the sample is tried. */
const PAUSE_MS = 200
/** The longest text that is tried as a stream. */
const LONGEST_STREAM = 5_000
const DIRECTIONS = Object.entries(TEXT.direction) as Array<[Direction, string]>

/** A sample, and what the draft does with it: each finding, whether it would be blocked, and what passes. */
export function LiveTest({ me, content }: { me: Me; content: PolicyContent }) {
  const [sample, setSample] = useState<string>(TEXT.sampleText)
  const [direction, setDirection] = useState<Direction>(content.directions[0] ?? 'request')
  const isCovered = content.directions.includes(direction)
  const trial = useTrial(me, content, sample, direction, isCovered)
  const result = isCovered ? trial.data : undefined
  return (
    <section aria-label={TEXT.live}>
      <div className={styles.line}>
        <h2>{TEXT.live}</h2>
        <span className={styles.dim}>{TEXT.liveNote}</span>
        <span className={styles.end}>
          <Segments label={TEXT.directions} values={DIRECTIONS} chosen={direction} onChoose={setDirection} />
        </span>
      </div>
      <div className={styles.sample}>
        <div aria-hidden="true">
          {result?.tried === sample ? marked(sample, result.answer.spans) : sample}
          {'\n'}
        </div>
        <textarea
          aria-label={TEXT.sample}
          value={sample}
          spellCheck={false}
          onChange={({ target }) => setSample(target.value)}
        />
      </div>
      {!isCovered && <Notice title={TEXT.notCovered(TEXT.direction[direction])} look="warn" />}
      {trial.error && isCovered && codeOf(trial.error) === undefined && <Failure error={trial.error} />}
      {result && (
        <Result result={result.answer} direction={direction} isLong={sample.length > LONGEST_STREAM} />
      )}
      <p className={styles.keys}>
        {TEXT.keys.map(([key, text]) => (
          <span key={key}>
            <kbd>{key}</kbd> {text}
          </span>
        ))}
      </p>
    </section>
  )
}

function useTrial(me: Me, content: PolicyContent, sample: string, direction: Direction, isCovered: boolean) {
  const text = useSettled(sample, PAUSE_MS)
  const { name: _, ...policy } = useSettled(content, PAUSE_MS)
  const organizationId = me.organization.id
  return useQuery({
    queryKey: ['policy-trial', organizationId, policy, direction, text],
    queryFn: async () => ({
      tried: text,
      answer: await call('policies.test', {
        path: { organizationId },
        body: { policy, direction, text, stream: text.length <= LONGEST_STREAM },
      }),
    }),
    enabled: isCovered,
    retry: false,
    placeholderData: keepPreviousData,
    // Neither the samples nor what they were tried with stay in memory.
    gcTime: 0,
  })
}

/** The sample with its findings marked; those that pass as they are only underlined. */
function marked(sample: string, spans: Trial['spans']): ReactNode[] {
  const parts: ReactNode[] = []
  let at = 0
  for (const { start, end, action } of spans) {
    parts.push(sample.slice(at, start))
    parts.push(
      <mark key={start} data-passes={action === 'warn' || action === 'allow' ? '' : undefined}>
        {sample.slice(start, end)}
      </mark>,
    )
    at = end
  }
  return [...parts, sample.slice(at)]
}

function Result({ result, direction, isLong }: { result: Trial; direction: Direction; isLong: boolean }) {
  const { spans, blocked, text, held_back: heldBack } = result
  const changed = spans.filter(({ action }) => !['allow', 'warn', 'block'].includes(action)).length
  const { verdicts, findingHeads: heads } = TEXT
  const verdict = blocked
    ? verdicts.blocked
    : changed === 0
      ? verdicts.unchanged
      : verdicts.changed(plural(changed, TEXT.place))
  const stream = heldBack ? TEXT.heldBack(numberText(heldBack.most)) : isLong ? TEXT.tooLongToStream : ''
  return (
    <>
      <p className={styles.verdict} role="status">
        <b>{verdict}</b> {plural(spans.length, TEXT.finding)}
        {stream && `; ${stream}`}.
      </p>
      <Table
        caption={heads.finding}
        isNarrow
        heads={[
          { text: heads.finding },
          { text: heads.characters, isFigure: true, width: 100 },
          { text: heads.score, isFigure: true, width: 66 },
          { text: heads.action, width: 90 },
        ]}
      >
        {spans.map(({ start, end, detector, score, action }) => (
          <tr key={start}>
            <td>{detector}</td>
            <td data-figure="">
              {start} – {end}
            </td>
            <td data-figure="">{score.toFixed(2)}</td>
            <td>
              <ActionText action={action} />
            </td>
          </tr>
        ))}
      </Table>
      <div className={styles.line}>
        <h2>{TEXT.result}</h2>
        <span className={styles.dim}>{TEXT.receives[direction]}</span>
      </div>
      <pre className={styles.passed}>{text ?? TEXT.nothingPasses}</pre>
    </>
  )
}
