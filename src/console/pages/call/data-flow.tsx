import { Link } from '@tanstack/react-router'
import { numberText } from '../../data/format.ts'
import { Section } from '../../design/section.tsx'
import { Shape, State } from '../../design/state.tsx'
import { Table } from '../../design/table.tsx'
import { type Bytes, contentOf, type ShownCall } from './call-record.ts'
import styles from './data-flow.module.css'
import { TEXT } from './text.ts'

const isBalanced = ({ inspected, uninspected, released, withheld }: Bytes): boolean =>
  inspected + uninspected === released + withheld

/** What policies saw and what they held back, in bytes of each direction, and their findings. */
export function DataFlow({ slug, shown }: { slug: string; shown: ShownCall }) {
  const { request, response, dlp } = contentOf(shown)
  const directions = [
    [TEXT.request, request],
    [TEXT.response, response],
  ].flatMap(([name, bytes]) => (bytes ? [[name as string, bytes as Bytes] as const] : []))
  const areBalanced = directions.every(([, bytes]) => isBalanced(bytes))
  return (
    <Section
      title={TEXT.data}
      note={TEXT.counted}
      end={
        directions.length > 0 &&
        (areBalanced ? (
          <>
            <Shape look="ok" />
            {TEXT.balanced}
          </>
        ) : (
          <State look="failed">{TEXT.unbalanced}</State>
        ))
      }
    >
      {directions.length === 0 && <p className={styles.none}>{dlp ? TEXT.endedBefore : TEXT.uncounted}</p>}
      {directions.map(([name, bytes]) => (
        <Flow key={name} name={name} bytes={bytes} />
      ))}
      <FindingTable slug={slug} shown={shown} />
    </Section>
  )
}

function Flow({ name, bytes }: { name: string; bytes: Bytes }) {
  const { inspected, uninspected, released, withheld } = bytes
  return (
    <div className={styles.flow}>
      <span>{name}</span>
      <Parts
        parts={[
          ['in', inspected],
          ['unseen', uninspected],
        ]}
      />
      <span className={styles.equals}>=</span>
      <Parts
        parts={[
          ['out', released],
          ['kept', withheld],
        ]}
      />
      <span className={styles.sum}>{TEXT.bytes(numberText(inspected + uninspected))}</span>
      <small className={styles.left}>
        {TEXT.inspected(numberText(inspected))}
        {uninspected > 0 && TEXT.uninspected(numberText(uninspected))}
      </small>
      <small className={styles.right}>
        {TEXT.released(numberText(released))}
        {withheld > 0 && <span className={styles.held}>{TEXT.withheld(numberText(withheld))}</span>}
      </small>
    </div>
  )
}

const Parts = ({ parts }: { parts: ReadonlyArray<readonly [look: string, bytes: number]> }) => (
  <div className={styles.bytes} aria-hidden="true">
    {parts
      .filter(([, bytes]) => bytes > 0)
      .map(([look, bytes]) => (
        <i key={look} data-look={look} style={{ flexGrow: bytes }} />
      ))}
  </div>
)

function FindingTable({ slug, shown }: { slug: string; shown: ShownCall }) {
  const rows = (contentOf(shown).dlp?.breakdown ?? []).flatMap(({ direction, action, policy, findings }) =>
    Object.entries(findings).map(([detector, count]) => ({ detector, direction, action, policy, count })),
  )
  if (rows.length === 0) return null
  const { findingHeads: heads } = TEXT
  return (
    <Table
      caption={TEXT.findings}
      stack="plain"
      heads={[
        { text: heads.finding },
        { text: heads.direction, width: 120 },
        { text: heads.action, width: 100 },
        { text: heads.policy, width: 150 },
        { text: heads.count, width: 64, isFigure: true },
      ]}
    >
      {rows.map(({ detector, direction, action, policy, count }) => (
        <tr key={`${detector} ${direction} ${action} ${policy}`}>
          <td data-place="a2">
            <Link to="/$slug/calls" params={{ slug }} search={{ q: `found:${detector}` }}>
              {detector}
            </Link>
          </td>
          <td data-place="b2">{direction.replaceAll('_', ' ')}</td>
          <td data-place="b1" className={styles.held}>
            {action}
          </td>
          <td title={policy}>
            <code>{policy.slice(0, 12)}</code>
          </td>
          <td data-place="a3" data-figure="">
            {numberText(count)}
          </td>
        </tr>
      ))}
    </Table>
  )
}
