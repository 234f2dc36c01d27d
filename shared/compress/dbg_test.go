package compress
import ("testing";"os";"fmt")
func TestDbg(t *testing.T){
 b,_:=os.ReadFile(os.Getenv("F")); s:=string(b)
 o:=Options{Path:os.Getenv("F"),Query:os.Getenv("Q")}
 for i:=0;i<4;i++{ k:=Detect(s,o.Path); d,r:=o.once(s,k,""); fmt.Println("#######",i,k,len(s),Tokens(s),len(d.text),Tokens(d.text),r); fmt.Println(d.text); if r!=""{break}; s=d.text }
}
