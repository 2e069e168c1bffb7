import {buildCorpus} from './corpus/corpus.ts'
import {LABEL_TYPES} from './corpus/values.ts'
import {Quality} from './quality-metrics.ts'
import {fullProfile,detectorOf} from './engine-under-test.ts'
const n=Number(process.argv[2]??60)
const c=buildCorpus({seed:1,valuesPerType:n,lookAlikes:600})
const d=detectorOf(fullProfile())
const q=new Quality()
console.time('run')
for(const s of c.labelled)q.add(s,d.detect(s.text))
for(const {sample} of c.innocent)q.add(sample,d.detect(sample.text))
console.timeEnd('run')
for(const t of LABEL_TYPES){const x=q.of(t);console.log(t.padEnd(16),x.labels,'recall',q.recall(t).toFixed(3),'cov',(x.covered/x.labels).toFixed(3),'right',x.right,'wrong',x.wrong,'prec',q.precision(t).toFixed(3),'f1',q.f1(t).toFixed(3))}
console.log(q.unknownDetectors)
const seen=new Map<string,number>()
console.log('MISSES',q.misses.length)
for(const m of q.misses){const k=m.label.type+'/'+m.label.kind;seen.set(k,(seen.get(k)??0)+1);if(seen.get(k)!<=3)console.log(k,m.sample.setting,JSON.stringify(m.sample.text.slice(Math.max(0,m.label.outerStart-40),m.label.outerEnd+15).slice(0,170)),m.instead.join())}
console.log('WRONG',q.wrongFindings.length)
const by=new Map<string,number>()
for(const w of q.wrongFindings){const k=w.span.detector;by.set(k,(by.get(k)??0)+1);if(by.get(k)!<=8)console.log(k,w.span.score,JSON.stringify(w.sample.text.slice(Math.max(0,w.span.start-40),w.span.start)),'[',JSON.stringify(w.sample.text.slice(w.span.start,w.span.end).slice(0,80)),']',w.sample.labels.map(l=>l.kind).join())}
console.log([...by])
