import { Link } from '@tanstack/react-router'
import { idText, numberText } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { nameOf, useNames } from '../../data/names.ts'
import { Facts, Section } from '../../design/section.tsx'
import styles from './call-facts.module.css'
import { contentOf, type ShownCall } from './call-record.ts'
import { TEXT } from './text.ts'

/** Who called, with what, and who answered. Each leads to the calls like it. */
export function WhoAndWhat({ me, shown }: { me: Me; shown: ShownCall }) {
  const names = useNames(me)
  const { actor, attempts = [] } = contentOf(shown)
  const slug = me.organization.slug
  const like = (word: string, id: string | null, text = id) =>
    id === null ? null : (
      <Link to="/$slug/calls" params={{ slug }} search={{ q: `${word}:${id}` }}>
        {text}
      </Link>
    )
  const answered = attempts.findIndex(({ failure }) => failure === null) + 1
  return (
    <Section title={TEXT.who}>
      <Facts
        facts={[
          [TEXT.names.user, like('user', shown.user_id, nameOf(names, shown.user_id))],
          [TEXT.names.key, like('key', shown.key_id, nameOf(names, shown.key_id))],
          [TEXT.names.address, actor?.ip && <Id key="ip" id={actor.ip} />],
          [TEXT.names.action, <Id key="action" id={shown.action} isWhole />],
          [TEXT.names.requested, like('model', shown.model)],
          [TEXT.names.tool, like('tool', shown.tool)],
          [
            TEXT.names.served,
            shown.provider && (
              <>
                {like('provider', shown.provider)}
                {attempts.length > 1 && answered > 0 && (
                  <span className={styles.dim}>{TEXT.routes(answered, attempts.length)}</span>
                )}
              </>
            ),
          ],
          [TEXT.names.connection, like('connection', shown.connection_id)],
          [TEXT.names.request, <Id key="request" id={shown.request_id} />],
          [
            TEXT.names.response,
            like('response', shown.response_id, shown.response_id && idText(shown.response_id)),
          ],
          [TEXT.names.run, like('run', shown.run_id, shown.run_id && idText(shown.run_id))],
          [
            TEXT.names.flags,
            shown.flags.map((flag) => flag.replaceAll('_', ' ')).join(', ') || TEXT.names.none,
          ],
        ]}
      />
    </Section>
  )
}

const Id = ({ id, isWhole = false }: { id: string | null; isWhole?: boolean }) =>
  id === null ? null : (
    <code className={styles.id} title={id}>
      {isWhole ? id : idText(id)}
    </code>
  )

/** The place of the record in its chain. */
export function Proof({ shown: { record } }: { shown: ShownCall }) {
  return (
    <Section title={TEXT.proof}>
      <Facts
        facts={[
          [
            TEXT.record,
            <>
              {numberText(record.sequence)}
              <span className={styles.dim}>{TEXT.ofChain(record.shard)}</span>
            </>,
          ],
          [TEXT.hash, <Id key="hash" id={record.hash} />],
          [TEXT.previous, <Id key="previous" id={record.previous_hash} />],
        ]}
      />
    </Section>
  )
}
